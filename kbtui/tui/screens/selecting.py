"""The candidate that a run's keys and panes are about: the one under the cursor that leads."""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from kbtui.tui.moment import subject_candidate
from kbtui.tui.screens.typing import viewer
from kbtui.tui.widgets.board import Board
from kbtui.tui.widgets.line_list import LineList

if TYPE_CHECKING:
    from kbtui.tui.screens.dashboard import Dashboard

#: The lists that choose a candidate, with the pane each is on.
_LISTS = {"cards": "rungs", "kanban": "rungs", "history-list": "history", "lineage": "lineage", "log": "log"}


class Selecting:
    """Acts for one dashboard: a list that was made a leader chooses the candidate of the dashboard's look."""

    def __init__(self, dashboard: "Dashboard") -> None:
        self.dashboard = dashboard
        self.look = dashboard.look

    def lead_by(self, *ids: str) -> None:
        """Let these lists choose what keys are about and panes show."""
        for name in ids:
            lines = self.dashboard.query_one(f"#{name}", LineList)
            lines.at_once = partial(self.select, lines)

    def leads(self, lines: LineList) -> bool:
        """Whether this list's cursor is the one that counts now."""
        pane = _LISTS.get(lines.id or "")
        if pane == "rungs":
            return not self.dashboard.alone and lines is self.dashboard.query_one(Board).cards
        return pane is not None

    def select(self, lines: LineList) -> None:
        """The candidate under a cursor that moved: a key that follows at once is about this one."""
        moment, pane = viewer(self.dashboard).moment, _LISTS.get(lines.id or "")
        if moment is None or not self.leads(lines):
            return
        board, key = self.dashboard.query_one(Board), lines.key
        self.look.selected = self.candidate_of_event(key) if pane == "log" else key or None
        if pane in ("history", "lineage") and key and not lines.following:
            board.cards.move_to_key(key)
        board.show_why(moment)

    def candidate_of_event(self, key: str | None) -> str | None:
        """What a line of the log is about; the candidate chosen before where it is about none."""
        moment = viewer(self.dashboard).moment
        if moment is None or key is None:
            return self.look.selected
        found = next((e for e in reversed(moment.journal) if str(e.seq) == key), None)
        return (subject_candidate(found) if found else None) or self.look.selected

    def list_of(self, pane: str) -> Iterable[LineList]:
        """The list whose cursor leads on a pane that is shown alone, if it is there yet and has one."""
        ids = [name for name, of in _LISTS.items() if of == pane != "rungs"]
        return (lines for name in ids for lines in self.dashboard.query(f"#{name}").results(LineList))
