"""The ladder of fidelities: what each rung spends on a candidate."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rung:
    """One level of the ladder. A higher rung spends more on a candidate.

    Attributes:
        index: position on the ladder, 0 is the cheapest.
        name: one word, as shown on the board.
        gate_stage: how much of the gate runs before anything is timed (0, 1, 2 or 4).
        max_pairs: most interleaved ABBA blocks against the incumbent, per process pair; 0 times nothing, and fewer than
            ``FASTER_PAIRS`` (evaluation/measure/adjudicate.py) in one process pair call nobody faster.
        process_pairs: fresh process pairs that must agree before a decision.
        profile: whether Nsight Compute (or the diagnosis without counters) runs here.
        share: part of the run's budget this rung may use while others wait, 0 to 1.
        more_process_pairs: further ones where those leave it unclear whether a candidate that is ahead is faster; then
            the decision is taken on all of them, and both times with half of the chance to be wrong.
    """

    index: int
    name: str
    gate_stage: int
    max_pairs: int
    process_pairs: int
    profile: bool
    share: float
    more_process_pairs: int = 0


COMPILE, SCREEN, MEASURE, PROFILE, CONFIRM = range(5)

DEFAULT_LADDER: tuple[Rung, ...] = (
    Rung(COMPILE, "compile", gate_stage=0, max_pairs=0, process_pairs=0, profile=False, share=1.0),
    Rung(SCREEN, "screen", gate_stage=1, max_pairs=6, process_pairs=1, profile=False, share=0.50),
    Rung(MEASURE, "measure", gate_stage=2, max_pairs=20, process_pairs=1, profile=False, share=0.45),
    Rung(PROFILE, "profile", gate_stage=2, max_pairs=16, process_pairs=3, profile=True, share=0.25),
    Rung(
        CONFIRM, "confirm", gate_stage=4, max_pairs=12, process_pairs=3, profile=False, share=0.12, more_process_pairs=3
    ),
)

#: Every stage of the gate on every shape, and nothing timed: no rung of a ladder.
WHOLE_GATE = Rung(CONFIRM, "verify", gate_stage=4, max_pairs=0, process_pairs=0, profile=False, share=1.0)
