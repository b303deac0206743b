"""What the viewer says when it is left: whether the search goes on, and how to come back."""

from dataclasses import dataclass

from kbtui.tui import fmt
from kbtui.tui.glyphs import UNICODE
from kbtui.tui.moment import Moment
from kbtui.tui.view.standing import best_of


@dataclass(frozen=True, slots=True)
class ViewerExit:
    """How the viewer was left. ``lines`` are for the caller to print; ``problem`` says why it could not go on."""

    run: str | None
    engine_alive: bool = False
    ended: bool = False
    lines: tuple[str, ...] = ()
    problem: str | None = None


def leave(moment: Moment | None) -> ViewerExit:
    """The exit from a run's screens, or from the list of runs where there is no moment."""
    if moment is None or not moment.known:
        return ViewerExit(moment.run if moment else None)
    run, state = moment.run, moment.state
    lines = []
    best = best_of(state)
    if best is not None:
        sure = "" if best.confirmed else ", not confirmed yet"
        modelled = " (modelled)" if moment.clock == "modelled" else ""
        number = fmt.interval(best.ratio, best.low, best.high, UNICODE)
        lines.append(f"{run}: best {number} over {best.over}{modelled}, {best.candidate}{sure}")
    if state.ended is not None:
        lines.append(f"The search has ended ({state.ended.reason}). See it again: kbtui attach {run}")
    elif moment.engine_here and moment.engine is not None:
        lines.append(
            f"The search goes on (pid {moment.engine.pid}). Come back: kbtui attach {run}   stop it: kbtui stop {run}"
        )
    else:
        lines.append(f"No engine works on {run}. Take it up again: kbtui resume {run}")
    return ViewerExit(run, moment.engine_here, state.ended is not None, tuple(lines))
