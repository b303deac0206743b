"""The steering keys: each says why it can do nothing, or asks what it needs and inserts a command."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kbtui.domain.event import Budget, CommandKind
from kbtui.errors import KbtuiError
from kbtui.tui.moment import Asking, Moment
from kbtui.tui.screens.ask import AskLine, Confirm
from kbtui.tui.view.log import command_words
from kbtui.tui.view.steer import budget_argument, budget_of, parse_budget, spent_already, why_not, wrong_hint

if TYPE_CHECKING:
    from textual.screen import Screen

    from kbtui.tui.app import Viewer


def _will_pause(moment: Moment) -> bool:
    """Whether the search is paused once the engine has taken what was asked."""
    asked = [c.kind for c in moment.pending if c.kind in (CommandKind.PAUSE, CommandKind.RESUME)]
    return asked[-1] is CommandKind.PAUSE if asked else moment.state.paused


def _will_be_budget(moment: Moment) -> Budget:
    """The budget once the engine has taken what was asked: a second +10m is on top of the first."""
    asked = [c.argument for c in moment.pending if c.kind is CommandKind.BUDGET]
    return budget_of(asked[-1]) if asked else moment.state.budget


class Steering:
    """Acts for one app; ``selected`` gives the candidate the keys are about."""

    def __init__(self, app: "Viewer", selected: Callable[[], str | None]) -> None:
        self.app, self.selected = app, selected
        self._editing: tuple[str, str, Screen[object]] | None = None

    def do(self, name: str) -> None:
        """Act on a key: ``pause`` is also resume."""
        moment = self.app.moment
        if moment is None:
            return
        kind = CommandKind(name)
        if kind is CommandKind.PAUSE and _will_pause(moment):
            kind = CommandKind.RESUME
        refused = why_not(moment, kind, self.selected(), self.app.options.readonly)
        if refused:
            self.app.say(refused)
            return
        self._act(kind, moment, self.selected() or "")

    def _act(self, kind: CommandKind, moment: Moment, selected: str) -> None:
        match kind:
            case CommandKind.PAUSE | CommandKind.RESUME:
                self._ask(kind)
            case CommandKind.PIN | CommandKind.PROMOTE:
                self._ask(kind, selected)
            case CommandKind.PRUNE:
                self._confirmed(f"Prune {selected}?", "It leaves the queue; + can send it on again.", kind, selected)
            case CommandKind.STOP:
                about = "The evaluation in flight is finished first. R takes the run up again."
                self._confirmed(f"Stop the search {moment.run}?", about, kind)
            case CommandKind.HINT:
                self._hint()
            case CommandKind.BUDGET:
                self._budget(moment)
            case CommandKind.SUBMIT:
                self._submit(moment, selected)

    def _ask(self, kind: CommandKind, argument: str = "", parent: str | None = None) -> None:
        if self.app.moment is not None:
            self.app.moment.asking.append(Asking(kind, argument))
            self.app.feed.ask(self.app.moment.run, kind, argument, "", parent)
            self.app.say(f"asked: {command_words(kind, argument, parent)}")

    def _confirmed(self, question: str, consequence: str, kind: CommandKind, argument: str = "") -> None:
        def answered(yes: bool | None) -> None:
            moment = self.app.moment
            if not yes or moment is None:
                return
            refused = why_not(moment, kind, argument)  # the search went on while it was asked
            if refused:
                self.app.say(refused)
            else:
                self._ask(kind, argument)

        self.app.push_screen(Confirm(question, consequence), answered)

    def _hint(self) -> None:
        about = "A sentence for the generators: it goes into the next prompts and decides which advice is tried."
        screen = AskLine("Give the search a hint", about, "try two rows a program with evict-first loads", wrong_hint)
        self.app.push_screen(screen, lambda text: self._ask(CommandKind.HINT, text.strip()) if text else None)

    def _budget(self, moment: Moment) -> None:
        def check(text: str) -> str | None:
            try:
                parse_budget(text, _will_be_budget(moment))
            except ValueError as error:
                return str(error)
            return None

        def answered(text: str | None) -> None:
            if text:
                self._set_budget(moment, parse_budget(text, _will_be_budget(moment)))

        now = command_words(CommandKind.BUDGET, budget_argument(_will_be_budget(moment)))
        about = f"Now {now}. 30m, +10m, gpu 5m, 200 candidates or none."
        self.app.push_screen(AskLine("Change the budget", about, "+10m", check), answered)

    def _set_budget(self, moment: Moment, budget: Budget) -> None:
        """A budget that is spent already ends the search: asked about first."""
        argument, spent = budget_argument(budget), spent_already(moment, budget)
        if spent and moment.state.ended is None:
            words = command_words(CommandKind.BUDGET, argument)
            about = f"{spent} of it is spent already: the search ends. R takes it up again with a larger one."
            self._confirmed(f"{words[:1].upper()}{words[1:]}?", about, CommandKind.BUDGET, argument)
        else:
            self._ask(CommandKind.BUDGET, argument)

    def _submit(self, moment: Moment, selected: str) -> None:
        parent = selected or moment.state.champion or moment.state.first
        tried = moment.state.tried.get(parent or "")
        if tried is None:
            self.app.say("no candidate to start from yet; wait for the first kernel, or: kbtui submit FILE")
            return
        self._editing = (tried.candidate.id, tried.commit, self.app.screen)
        text = self.app.feed.text(tried.commit)
        if text is not None:
            self.source_arrived(tried.commit, text)

    def source_arrived(self, commit: str, text: str) -> None:
        """The source that ``e`` was waiting for is there: open it, where that is still what the user looks at."""
        if self._editing is None or self._editing[1] != commit:
            return
        (parent, _, asked_on), self._editing = self._editing, None
        if self.app.screen is not asked_on:
            self.app.say("the source is there now; e opens it in the editor")
            return
        try:
            edited = self.app.edit(text, f"{parent}.py")
        except KbtuiError as error:
            self.app.say(str(error))
            return
        if edited is None:
            self.app.say("nothing submitted: the source was not changed")
        else:
            self._ask(CommandKind.SUBMIT, edited, parent)

    def source_missing(self, commit: str) -> None:
        """The source cannot be read: a later reading of it must not open an editor."""
        if self._editing is not None and self._editing[1] == commit:
            self._editing = None
