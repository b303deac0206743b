"""The candidate's role as it is, timed by the host."""

from host_bench import HostBench

from kbtui.evaluation.roles import bench
from kbtui.evaluation.roles.candidate import make, warm

bench.Bench = HostBench

__all__ = ["make", "warm"]
