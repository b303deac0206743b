"""How many cores a process may use: affinity, and the quotas of the cgroups above it."""

import os
import subprocess
import sys

import pytest

from kbtui.cores import cores, usable_cores

N_ALLOWED = len(os.sched_getaffinity(0))


def put(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def found(tmp_path, own):
    (tmp_path / "own").write_text(own)
    return usable_cores(tmp_path / "cgroup", tmp_path / "own")


def test_without_a_quota_they_are_those_of_its_affinity(tmp_path):
    put(tmp_path / "cgroup", cpu__max="max 100000\n")
    assert found(tmp_path, "0::/\n") == N_ALLOWED


def test_no_cgroups_at_all_are_no_quota(tmp_path):
    assert usable_cores(tmp_path / "none", tmp_path / "none either") == N_ALLOWED
    assert found(tmp_path, "0::/gone\nnonsense\n") == N_ALLOWED


@pytest.mark.parametrize("cpu_max", ["50000 100000", "5000 10000\n"])
def test_a_quota_leaves_the_time_that_it_allows(tmp_path, cpu_max):
    put(tmp_path / "cgroup", cpu__max=cpu_max)
    assert found(tmp_path, "0::/\n") == 0.5


def test_a_quota_beyond_the_affinity_takes_nothing(tmp_path):
    put(tmp_path / "cgroup", cpu__max="99900000 100000")
    assert found(tmp_path, "0::/\n") == N_ALLOWED


def test_the_tightest_quota_above_a_process_counts(tmp_path):
    put(tmp_path / "cgroup/a.slice", cpu__max="25000 100000")
    put(tmp_path / "cgroup/a.slice/b.scope", cpu__max="75000 100000")
    assert found(tmp_path, "0::/a.slice/b.scope\n") == 0.25


def test_a_path_that_is_not_mounted_leaves_the_quota_of_what_is(tmp_path):
    """As in a container that sees its host's path, and its own group at the root."""
    put(tmp_path / "cgroup", cpu__max="50000 100000")
    assert found(tmp_path, "0::/docker/0123\n") == 0.5


@pytest.mark.parametrize(("quota", "left"), [("40000", 0.4), ("-1", N_ALLOWED)])
def test_version_1_says_it_in_two_files(tmp_path, quota, left):
    put(tmp_path / "cgroup/cpu,cpuacct/job", cpu__cfs_quota_us=quota, cpu__cfs_period_us="100000")
    put(tmp_path / "cgroup/memory/job", cpu__max="10000 100000")
    assert found(tmp_path, "4:memory:/job\n3:cpu,cpuacct:/job\n0::/\n") == left


@pytest.mark.parametrize("text", ["", "half of them", "50000", "50000 0", "max"])
def test_a_quota_nobody_can_read_is_none(tmp_path, text):
    put(tmp_path / "cgroup", cpu__max=text)
    assert found(tmp_path, "0::/\n") == N_ALLOWED


def test_a_process_that_is_bound_to_one_core_counts_one():
    bound = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); from kbtui.cores import cores; "
    said = subprocess.run([sys.executable, "-c", bound + "print(cores())"], capture_output=True, check=True, text=True)
    assert said.stdout == "1\n"


def test_there_is_always_one_to_work_with():
    assert 1 <= cores() <= N_ALLOWED


def test_devices_and_the_doctor_count_by_the_same_function():
    from kbtui.doctor_probes import python
    from kbtui.evaluation.devices import cuda, model

    assert cuda.cores is model.cores is cores
    assert python.usable_cores is usable_cores
