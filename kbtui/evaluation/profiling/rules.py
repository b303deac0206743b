"""All rules of the diagnosis, ranked: is a bottleneck there, how much of the time does it explain, on what evidence.

Pure. A rule's weight is the part of the kernel's time that curing it could save, 0 to 1, so weights of different rules
can be compared. Everything but the bound itself is scaled by the gap: the part of the time above the problem's bound.
"""

from kbtui.domain.profile import Bottleneck, Evidence, Finding
from kbtui.evaluation.profiling import rules_compute, rules_memory, rules_parallel
from kbtui.evaluation.profiling.case import Case, Rule

RULES: tuple[Rule, ...] = (
    rules_memory.at_bound, rules_memory.dram, rules_memory.extra_passes, rules_memory.cache,
    rules_memory.uncoalesced, rules_memory.spills, rules_parallel.too_few_programs, rules_parallel.tail,
    rules_parallel.occupancy, rules_memory.narrow, rules_parallel.latency, rules_parallel.barrier,
    rules_memory.bank_conflicts, rules_compute.no_tensor_cores, rules_compute.special_functions,
    rules_compute.integer, rules_compute.compute, rules_parallel.launch,
)  # fmt: skip


def findings(case: Case) -> tuple[Finding, ...]:
    """Everything the rules find, heaviest first; never empty."""
    ranked = sorted((f for rule in RULES for f in rule(case)), key=lambda f: -f.weight)
    return tuple(ranked) or (
        Finding(Bottleneck.UNKNOWN, 0.0, (Evidence("above the bound", case.gap * 100, "% of the time"),)),
    )
