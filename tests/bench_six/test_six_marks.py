"""What a case's time went into."""

from benchmarks.six.marks import Marks, Turns, told
from kbtui.domain.measurement import LiveSample


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def sample(against: str, pair: int) -> LiveSample:
    return LiveSample("c0007", against, "4096x16384", 1.0, 2.0, pair, 12)


def test_a_phase_is_the_time_since_the_one_before() -> None:
    clock, said = Clock(), list[str]()
    marks = Marks(clock, said.append)
    for seconds, phase in ((4.0, "open"), (2.5, "gate")):
        clock.now += seconds
        marks.reached(phase)
    assert marks.phases == (("open", 4.0), ("gate", 2.5))
    assert said == ["phase open: 4.0 s", "phase gate: 2.5 s"]
    assert told(marks.phases) == "open 4.0, gate 2.5: 6 s"


def test_every_process_pair_is_told_by_what_it_took_to_start_and_to_take_turns() -> None:
    clock = Clock()
    marks = Marks(clock, lambda _: None)
    turns = Turns(marks)
    for wait_s, against, pair in ((6.0, "first", 1), (1.0, "eager", 1), (1.0, "first", 2), (0.5, "eager", 2),
                                  (5.0, "first", 1), (2.0, "eager", 1)):  # fmt: skip
        clock.now += wait_s
        turns(sample(against, pair))
    clock.now += 0.75
    turns.over()
    clock.now += 3.0
    marks.reached("end")
    assert marks.phases == (
        ("start of process pair 1", 6.0), ("turns of process pair 1", 2.5), ("start of process pair 2", 5.0),
        ("turns of process pair 2", 2.0), ("last judgements", 0.75), ("end", 3.0),
    )  # fmt: skip
    assert sum(s for _, s in marks.phases) == clock.now - 100.0


def test_turns_that_were_never_taken_are_told_as_time_all_the_same() -> None:
    clock = Clock()
    marks = Marks(clock, lambda _: None)
    turns = Turns(marks)
    clock.now += 9.0
    turns.over()
    assert marks.phases == (("last judgements", 9.0),)
