"""Everything known of one candidate, as sections of lines."""

from kbtui.domain.event import RungCompleted
from kbtui.domain.measurement import Clock, Measurement
from kbtui.scheduler.basis import basis_words
from kbtui.scheduler.reasons import evidence_words
from kbtui.scheduler.score import score_of, score_words
from kbtui.scheduler.shrinkage import shrinkage_words, shrinkages
from kbtui.scheduler.state import Tried
from kbtui.tui import fmt
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.moment import Moment, children_of
from kbtui.tui.text import Line, Role, clip, columns, line, wrap
from kbtui.tui.view.standing import ROLES, glyph_of, standing_of

#: Artifacts shown as text on the detail screen; others (reports, samples) are only listed.
_READABLE = ("prompt", "reply", "compiler", "stderr", "log", "error", "gate", ".md", ".txt", ".py", ".json")


def readable(name: str) -> bool:
    """Whether an artifact of this name is text a person reads."""
    return any(word in name.lower() for word in _READABLE)


def detail_lines(moment: Moment, candidate: str, width: int, g: Glyphs) -> list[Line]:
    """Where it came from, what the gate said, its times on each rung, and what was made of it."""
    tried = moment.state.tried[candidate]
    out = _origin(moment, tried, width, g)
    for rung in sorted(tried.results, reverse=True):
        out += [(), *_rung(moment, tried.results[rung], width, g)]
    refs = [ref for r in tried.results.values() for ref in r.outcome.artifacts]
    if refs:
        out += [(), _title("Artifacts", width, g), *(line(f"{r.name:<24} ", (r.sha256[:16], Role.DIM)) for r in refs)]
    return [clip(row, width, g.ellipsis) for row in out]


def _title(text: str, width: int, g: Glyphs) -> Line:
    return ((f"{text} ", Role.TITLE), (g.rule * max(width - len(text) - 1, 0), Role.DIM))


def _origin(moment: Moment, tried: Tried, width: int, g: Glyphs) -> list[Line]:
    c, standing = tried.candidate, standing_of(moment, tried)
    made = f"{c.origin.generator} / {c.origin.operator}" + (f", for hint {c.origin.hint}" if c.origin.hint else "")
    kids = children_of(moment.state, c.id)
    out: list[Line] = [
        line((f"{glyph_of(standing, g)} {c.id} {standing.value}  ", ROLES[standing]), (c.summary, Role.STRONG)),
        *_fact("made by", made, width),
        *_fact("parents", ", ".join(c.parents) or "none (a first draft)", width),
        *_fact("structure", c.structure, width),
        *_fact("commit", tried.commit[:12], width),
        *_fact(
            "score", f"{fmt.ratio(tried.score, g)} over the first kernel" if tried.score else "not timed yet", width
        ),
    ]
    if (score := score_of(tried)) is not None:
        out += _fact("promise", score_words(score), width)
    for shrinkage in shrinkages(tried):
        out += _fact("screened", shrinkage_words(shrinkage), width)
    if c.origin.params:
        out += _fact("parameters", ", ".join(f"{k}={v}" for k, v in c.origin.params), width)
    if kids:
        out += _fact("children", f"{len(kids)}: {', '.join(t.candidate.id for t in kids[:12])}", width)
    for note in c.notes:
        out += wrap(f"note: {note}", width, Role.DIM)
    return out


def _fact(name: str, value: str, width: int, role: Role = Role.PLAIN) -> list[Line]:
    """A name and its value, which goes on below where it is long."""
    rows = wrap(value, width - 11, role) or [()]
    return [((f"{name if i == 0 else '':<11}", Role.DIM), *row) for i, row in enumerate(rows)]


def _rung(moment: Moment, result: RungCompleted, width: int, g: Glyphs) -> list[Line]:
    ladder = moment.state.started.ladder if moment.state.started else ()
    name = ladder[result.rung].name if result.rung < len(ladder) else ""
    verdict, outcome = result.outcome.verdict, result.outcome
    role = Role.GOOD if verdict.ok else Role.BAD
    spent = f"{outcome.wall_s:.1f} s, GPU {outcome.gpu_s:.1f} s"
    decided = result.decision.value.replace("_", " ")
    out = [_title(f"Rung {result.rung} {name}: {decided}", width, g)]
    out += wrap(result.reason, width, Role.STRONG)
    for told in basis_words(result.basis) if result.basis else ():
        out += wrap(told, width, Role.DIM)
    where = f", line {verdict.line}" if verdict.line else ""
    said = f"{verdict.kind.value} ({verdict.reason.value}{where}), stage {verdict.stage}, proof {verdict.proof.value}"
    out += _fact("gate", said, width, role)
    if verdict.error is not None:
        out += _fact("error", f"{verdict.error:.1e} relative L2", width)
    if verdict.detail:
        out += wrap(verdict.detail, width, Role.DIM, indent=" " * 11)
    out += _fact("cost", spent, width)
    return out + (_timings(outcome.measurement, width, g) if outcome.measurement else [])


def _timings(measured: Measurement, width: int, g: Glyphs) -> list[Line]:
    shown = 4 if width >= 60 else 3
    head = [("shape", 14, False), ("device", 9, True), ("95 % interval", 19, True), ("end to end", 11, True)][:shown]
    modelled = f"   ({measured.clock.value})" if measured.clock is Clock.MODELLED else ""
    out: list[Line] = [((columns(head) + modelled, Role.DIM),)]
    for t in measured.timings:
        span = fmt.time_span(t.low_us, t.high_us, g) if t.low_us != t.high_us else ""
        end = fmt.time_us(t.end_to_end_us, g) if t.end_to_end_us is not None else ""
        cells = [(t.shape, 14, False), (fmt.time_us(t.device_us, g), 9, True), (span, 19, True), (end, 11, True)]
        out.append(((columns(cells[:shown]), Role.PLAIN),))
    for c in measured.comparisons:
        words = f", {evidence_words(c)}" if measured.clock is Clock.MEASURED else " (modelled)"
        numbers = f"{fmt.interval(c.ratio, c.low, c.high, g)} {c.outcome.value}"
        out += wrap(f"against {c.against}: {numbers}{words}", width)
        out += [_shape_ratio(s.shape, s.ratio, s.low, s.high, g) for s in c.shapes] if len(c.shapes) > 1 else []
    if measured.unstable:
        out.append(line((f"! unstable: {measured.unstable}", Role.WARN)))
    return out


def _shape_ratio(shape: str, ratio: float, low: float, high: float, g: Glyphs) -> Line:
    return line((f"   on {shape:<14} {fmt.interval(ratio, low, high, g)}", Role.DIM))
