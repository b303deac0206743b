"""The sandbox's protections on this machine. Effects: confines a child and asks it."""

from kbtui.doctor_probes.check import Check, State
from kbtui.evaluation.process.sandbox import Protection, probe


def sandbox_check() -> Check:
    return judge_sandbox(probe())


def judge_sandbox(protections: tuple[Protection, ...]) -> Check:
    missing = [p for p in protections if not p.enforced]
    if missing:
        found = "; ".join(f"{p.name}: {p.detail}" for p in missing)
        advice = "candidates run with less around them, and runs are stamped so: run only sources you trust"
        return Check("sandbox", State.WARN, found, advice)
    return Check("sandbox", State.OK, "; ".join(f"{p.name} {p.detail}" for p in protections))
