"""How a run is looked at: the cursor, the mark, filter and order. The panes read it, keys change it."""

from dataclasses import dataclass

from kbtui.tui.view.base import Base
from kbtui.tui.view.history import Order


@dataclass(slots=True)
class Look:
    """One viewer's way of looking at a run.

    Attributes:
        selected: the candidate under the cursor, which the bottleneck, the diff and the comparison follow.
        marked: the candidate others are compared with.
        base: what the diff and the comparison are against.
        query: words of the filter, empty for none.
        by_gpu: the best-so-far curve is over GPU seconds, not wall seconds.
        order: of the history.
        only_bests: of history and lineage only what was a best once, or led to one.
        board: cards in a column a rung; None chooses by the room there is.
    """

    selected: str | None = None
    marked: str | None = None
    base: Base = Base.PARENT
    query: str = ""
    by_gpu: bool = False
    order: Order = Order.NEWEST
    only_bests: bool = False
    board: bool | None = None
