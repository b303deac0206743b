"""What the gate said of a candidate."""

from dataclasses import dataclass
from enum import StrEnum


class VerdictKind(StrEnum):
    """VERIFIED passed; REJECTED is the candidate's failure; UNVERIFIED is ours or the machine's."""

    VERIFIED = "verified"
    REJECTED = "rejected"
    UNVERIFIED = "unverified"


class Proof(StrEnum):
    """Where the computation was checked. NONE: no stage that runs the kernel has been reached."""

    NONE = "none"
    INTERPRETER = "interpreter"
    GPU = "gpu"


class Reason(StrEnum):
    """Reason codes; each belongs to one check of the gate."""

    OK = "ok"
    # static policy and signature
    SYNTAX = "syntax"
    POLICY_IMPORT = "policy_import"
    POLICY_NAME = "policy_name"
    NO_ENTRY_POINT = "no_entry_point"
    NO_TRITON_KERNEL = "no_triton_kernel"
    SIGNATURE = "signature"
    # compile
    COMPILE_ERROR = "compile_error"
    OUT_OF_RESOURCES = "out_of_resources"
    # correctness
    RAISED = "raised"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    WRONG_TYPE = "wrong_type"
    WRONG_SHAPE = "wrong_shape"
    WRONG_DTYPE = "wrong_dtype"
    WRONG_VALUES = "wrong_values"
    NAN_MISMATCH = "nan_mismatch"
    UNWRITTEN_OUTPUT = "unwritten_output"
    # honesty
    INPUT_MODIFIED = "input_modified"
    ALIASES_INPUT = "aliases_input"
    KERNELS_DO_NOTHING = "kernels_do_nothing"
    FORBIDDEN_OP = "forbidden_op"
    WRONG_WHEN_TIMED = "wrong_when_timed"
    FASTER_THAN_CHIP = "faster_than_chip"
    CLOCKS_DISAGREE = "clocks_disagree"
    GLOBALS_CHANGED = "globals_changed"
    SANDBOX_VIOLATION = "sandbox_violation"
    # unverified
    HARNESS_FAILED = "harness_failed"
    DEVICE_LOST = "device_lost"
    INTERPRETER_UNSUPPORTED = "interpreter_unsupported"
    REFERENCE_FAILED = "reference_failed"
    NOT_RECORDED = "not_recorded"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The gate's answer on one candidate at one stage.

    Attributes:
        stage: the last gate stage entered (0, 1, 2, 4).
        detail: one line for a person: numbers, shape, distribution, limit.
        line: 1-based line of the candidate's source the reason points at, where there is one.
        error: largest relative L2 error seen, None before correctness ran.
        deterministic: whether the same inputs gave the same bits again; None where that was not asked. It is told
            beside the verdict and decides nothing: sums by atomics are fair.
    """

    kind: VerdictKind
    reason: Reason
    stage: int
    proof: Proof
    detail: str = ""
    line: int | None = None
    error: float | None = None
    deterministic: bool | None = None

    @property
    def ok(self) -> bool:
        return self.kind is VerdictKind.VERIFIED


def verified(stage: int, proof: Proof, detail: str = "", error: float | None = None) -> Verdict:
    return Verdict(VerdictKind.VERIFIED, Reason.OK, stage, proof, detail, None, error)


def rejected(reason: Reason, stage: int, proof: Proof, detail: str, line: int | None = None) -> Verdict:
    return Verdict(VerdictKind.REJECTED, reason, stage, proof, detail, line)


def unverified(reason: Reason, stage: int, proof: Proof, detail: str) -> Verdict:
    return Verdict(VerdictKind.UNVERIFIED, reason, stage, proof, detail)
