"""How a kernel was verified, in one sentence and as a value. Pure."""

from dataclasses import dataclass

from kbtui.domain.verdict import Proof
from kbtui.scheduler.state import Tried

_WHERE = {Proof.GPU: "on the GPU", Proof.INTERPRETER: "under Triton's interpreter", Proof.NONE: "not run"}


@dataclass(frozen=True, slots=True)
class Verified:
    """``stages``: (gate stage, what it said) of each stage passed; ``worst_error``: largest relative L2 error seen."""

    proof: Proof
    stages: tuple[tuple[int, str], ...]
    worst_error: float | None

    @property
    def sentence(self) -> str:
        """``on the GPU: stage 1 (25 checks), stage 2 (...); worst relative L2 error 1.1e-07``."""
        if not self.stages:
            return "not verified: no stage of the gate ran it"
        told = ", ".join(f"stage {s} ({detail})" if detail else f"stage {s}" for s, detail in self.stages)
        error = f"; worst relative L2 error {self.worst_error:.1e}" if self.worst_error is not None else ""
        return f"{_WHERE[self.proof]}: {told}{error}"


def how_verified(tried: Tried) -> Verified:
    """Of the stages that ran the kernel: those above 0 which it passed."""
    passed = [r.outcome.verdict for _, r in sorted(tried.results.items()) if r.outcome.verdict.ok]
    ran = {v.stage: v for v in reversed(passed) if v.proof is not Proof.NONE and v.stage > 0}
    errors = [v.error for v in passed if v.error is not None]
    proof = ran[max(ran)].proof if ran else Proof.NONE
    return Verified(proof, tuple((s, ran[s].detail) for s in sorted(ran)), max(errors, default=None))
