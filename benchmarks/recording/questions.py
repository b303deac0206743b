"""Which question comes next: to whom, and about which candidate. Pure."""

from collections import Counter
from dataclasses import dataclass

from benchmarks.recording.recording import Recording
from benchmarks.recording.speeds import speed_of
from kbtui.domain.pool import PoolCandidate

#: A parent slower than this part of the fastest is not asked about: nobody would refine it.
WORTH_ASKING = 0.5


@dataclass(frozen=True, slots=True)
class Question:
    generator: str
    parent: PoolCandidate | None
    hinted: bool


def next_question(recording: Recording, generators: tuple[str, ...]) -> Question | None:
    """Drafts first; then the generator and parent asked least, the fastest of each structure. Pure; None: all said."""
    times = Counter((a.generator, a.parent) for a in recording.asked)
    empty = {(a.generator, a.parent) for a in recording.asked if a.answers == 0}
    if "playbook" in generators and not times["playbook", None]:
        return Question("playbook", None, True)
    options = [
        (times[name, parent.source_sha], -speed, number, name, parent)
        for parent, speed in heads(recording.candidates)
        for number, name in enumerate(generators)
        if (name, parent.source_sha) not in empty
    ]
    if not options:
        drafted = ("playbook", None) in empty or "playbook" not in generators
        return None if drafted else Question("playbook", None, times["playbook", None] % 2 == 0)
    asked, _, number, name, parent = min(options, key=lambda o: o[:3])
    return Question(name, parent, (asked + number + len(recording.asked)) % 2 == 0)


def is_complete(recording: Recording, n_candidates: int, generators: tuple[str, ...]) -> bool:
    """Whether it has so many candidates, or all that the generators had to say."""
    exhausted = not recording.planned and next_question(recording, generators) is None
    return len(recording.candidates) >= n_candidates or (bool(recording.candidates) and exhausted)


def heads(candidates: list[PoolCandidate]) -> list[tuple[PoolCandidate, float]]:
    """The fastest of each structure with its speed over the first kernel, those worth asking about, best first."""
    best: dict[str, tuple[PoolCandidate, float]] = {}
    for candidate in candidates:
        speed = speed_of(candidate)
        if speed is not None and speed > best.get(candidate.structure, (candidate, 0.0))[1]:
            best[candidate.structure] = (candidate, speed)
    fastest = max((speed for _, speed in best.values()), default=0.0)
    return sorted((b for b in best.values() if b[1] >= WORTH_ASKING * fastest), key=lambda b: -b[1])
