"""The header: is it alive, what was spent, how good is the best, measured or modelled, on which device."""

from dataclasses import dataclass

from kbtui.domain.measurement import Clock
from kbtui.tui import fmt
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.moment import SILENT_AFTER_S, Moment
from kbtui.tui.text import Line, Role, clip, width_of
from kbtui.tui.view.standing import Best, best_of

#: How a device's name begins that plays recorded measurements back.
_REPLAY = "replay of "


@dataclass(frozen=True, slots=True)
class Alive:
    """The engine's state in a few words; ``lost`` when someone has to do something about it."""

    sign: str
    words: str
    role: Role
    lost: bool = False


@dataclass(frozen=True, slots=True)
class HeaderView:
    run: str
    problem: str
    device: str
    clock: Clock | None
    alive: Alive
    wall: str
    gpu: str
    candidates: str
    best: Best | None
    frozen: bool


def header_view(moment: Moment, g: Glyphs, frozen: bool = False) -> HeaderView:
    state = moment.state
    wall, gpu, candidates = fmt.spent(moment.wall_s, moment.gpu_s, moment.n_candidates, state.budget)
    started = state.started
    return HeaderView(
        run=moment.run,
        problem=started.problem if started else "",
        device=short_device(started.device.name) if started else "",
        clock=moment.clock,
        alive=alive_of(moment, g),
        wall=wall,
        gpu=gpu,
        candidates=candidates,
        best=best_of(state),
        frozen=frozen,
    )


def alive_of(moment: Moment, g: Glyphs) -> Alive:
    """The first thing a person wants to know."""
    state, engine = moment.state, moment.engine
    if state.ended is not None:
        return Alive(g.ended, f"ended: {state.ended.reason.value}", Role.STRONG)
    age_s = engine.beat_age_s if engine is not None else None
    if moment.engine_here:
        if age_s is not None and age_s > SILENT_AFTER_S:
            return Alive(g.paused, f"engine silent for {fmt.ago(age_s)}", Role.WARN)
        if state.stop_asked:
            return Alive(g.alive, "stopping", Role.WARN)
        if state.paused:
            return Alive(g.paused, "paused, p resumes", Role.WARN)
        return Alive(g.alive, "searching", Role.GOOD)
    if engine is not None and engine.alive:
        return Alive(g.paused, f"waits: the engine works on {engine.run}", Role.WARN)
    if age_s is not None and engine is not None and engine.run == moment.run:
        return Alive(g.lost, f"engine lost {fmt.ago(age_s)} ago, R to resume", Role.ALARM, lost=True)
    if not moment.known:
        return Alive(g.waiting, "waiting for the engine's first event", Role.WARN)
    return Alive(g.lost, "no engine, R to resume", Role.ALARM, lost=True)


def short_device(name: str) -> str:
    """``H200`` for ``NVIDIA H200``, ``replay of H200`` for a pool's, ``A100-SXM4-80GB`` as it is."""
    played_back = name.startswith(_REPLAY)
    chip = name.removeprefix(_REPLAY).partition(", pool ")[0] if played_back else name
    return f"{_REPLAY if played_back else ''}{chip.removeprefix('NVIDIA ').strip()}"


def header_line(view: HeaderView, width: int, g: Glyphs) -> Line:
    """The header in ``width`` cells: what matters least is left out first."""
    for gap in ("   ", "  "):
        pieces = _pieces(view, g, gap)
        dropped: set[str] = set()
        for name in ("program", "candidates", "gpu", "over", "measured", "problem"):
            if _width(pieces, dropped) <= width:
                break
            dropped.add(name)
        if _width(pieces, dropped) <= width:
            break
    for name in ("device", "interval", "wall"):
        if _width(pieces, dropped) > width:
            dropped.add(name)
    kept = [piece for name, piece in pieces if name not in dropped]
    return clip(tuple(part for piece in kept for part in piece), width, g.ellipsis)


def _width(pieces: list[tuple[str, Line]], dropped: set[str]) -> int:
    return sum(width_of(piece) for name, piece in pieces if name not in dropped)


def _pieces(view: HeaderView, g: Glyphs, gap: str) -> list[tuple[str, Line]]:
    pieces: list[tuple[str, Line]] = [
        ("program", ((" kbtui ", Role.TITLE),)),
        ("run", ((f" {view.run}", Role.STRONG),)),
    ]
    if view.problem and not view.run.startswith(view.problem):
        pieces.append(("problem", ((f" {view.problem}", Role.PLAIN),)))
    if view.device:
        pieces.append(("device", ((f"{gap[:2]}{view.device.removeprefix(_REPLAY)}", Role.PLAIN),)))
    if view.device.startswith(_REPLAY):
        pieces.append(("clock", ((" ", Role.PLAIN), (" REPLAY ", Role.LOUD))))
    if view.clock is Clock.MODELLED:
        pieces.append(("clock", ((" ", Role.PLAIN), (" MODELLED ", Role.LOUD))))
    elif view.clock is Clock.MEASURED:
        pieces.append(("measured", ((f" {g.dot} measured", Role.DIM),)))
    pieces.append(("alive", ((gap, Role.PLAIN), (f"{view.alive.sign} {view.alive.words}", view.alive.role))))
    if view.frozen:
        pieces.append(("frozen", (("  ", Role.PLAIN), (" FROZEN ", Role.LOUD))))
    wall = view.wall if gap == "   " else view.wall.replace(" of ", "/")
    pieces.append(("wall", ((f"{gap}{wall}", Role.PLAIN),)))
    if view.clock is not Clock.MODELLED:
        pieces.append(("gpu", ((f"{gap}{view.gpu}", Role.DIM),)))
    pieces.append(("candidates", ((f"{gap}{view.candidates}", Role.DIM),)))
    return pieces + _best_pieces(view.best, g, gap)


def _best_pieces(best: Best | None, g: Glyphs, gap: str) -> list[tuple[str, Line]]:
    if best is None:
        return [("best", ((f"{gap}nothing timed yet", Role.DIM),))]
    role = Role.GOOD if best.confirmed else Role.PLAIN
    whole = fmt.interval(best.ratio, best.low, best.high, g)
    bare, _, bounds = whole.partition(" ")
    return [
        ("best", ((f"{gap}best ", Role.DIM), (bare, role))),
        ("interval", ((f" {bounds}" if bounds else "", role),)),
        ("over", ((f" over {best.over}", Role.DIM),)),
        ("best", ((f"  {best.candidate}{'' if best.confirmed else ' (not confirmed)'}", role),)),
    ]
