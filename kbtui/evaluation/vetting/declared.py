"""Whether what a problem declares of its sizes fits what its reference makes. Pure."""

from kbtui.domain.problem import ProblemSpec, Shape
from kbtui.domain.vetting import Complaint, Flaw

#: Share of a device's memory that a call's inputs may take: outputs, the reference and its oracle need the rest.
MEMORY_SHARE = 0.3
_FORMULA_SLACK = 1.01


def too_large(shape: Shape, input_bytes: int, memory_bytes: int, device: str) -> Complaint | None:
    """Inputs that leave no room for what is computed of them."""
    most = MEMORY_SHARE * memory_bytes
    if input_bytes <= most:
        return None
    what = f"the {shape.role} shape {shape.name} has {_gb(input_bytes)} of inputs"
    return Complaint(Flaw.TOO_LARGE, what, f"choose one under {_gb(most)}, {MEMORY_SHARE:.0%} of {device}'s memory")


def formula_complaint(spec: ProblemSpec, shape: Shape, moved_bytes: int) -> Complaint | None:
    """``moved_bytes``: of inputs and outputs, each once; no kernel need move more, so no formula may say more."""
    declared = spec.bytes_moved(shape)
    if declared <= _FORMULA_SLACK * moved_bytes:
        return None
    what = f"the bytes formula gives {declared:,.0f} for {shape.name}, inputs and outputs have {moved_bytes:,}"
    do = "count each of them once: a kernel that beats the bound is rejected as faster than the chip"
    return Complaint(Flaw.BAD_FORMULA, what, do)


def _gb(n_bytes: float) -> str:
    return f"{n_bytes / (1 << 30):.1f} GB"
