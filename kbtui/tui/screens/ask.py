"""Small windows: a question with two answers, and a line to type."""

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from kbtui.tui.widgets.one_line import OneLine

_CSS = """
{name} {{ align: center middle; background: $background 50%; }}
{name} > Vertical {{ width: 64; max-width: 90%; height: auto; padding: 1 2;
  border: round $primary; background: $surface; }}
{name} Static {{ width: 1fr; height: auto; }}
{name} .title {{ text-style: bold; color: $text-primary; margin-bottom: 1; }}
{name} .keys {{ color: $kb-dim; margin-top: 1; }}
{name} Input {{ margin-top: 1; background: $panel; }}
"""


class Confirm(ModalScreen[bool]):
    """Nothing is done without ``y``; esc, n and q go back."""

    DEFAULT_CSS = _CSS.format(name="Confirm")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,q", "answer(False)", "No"),
    ]

    def __init__(self, question: str, consequence: str) -> None:
        super().__init__()
        self.question, self.consequence = question, consequence

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self.question, classes="title", markup=False)
            yield Static(self.consequence, markup=False)
            yield Static("y yes   n or esc no", classes="keys", markup=False)

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


class AskLine(ModalScreen[str | None]):
    """A line of text; ``check`` returns what is wrong with it, or None. Esc gives nothing."""

    DEFAULT_CSS = _CSS.format(name="AskLine") + "AskLine .wrong { color: $text-error; height: auto; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", "Cancel")]

    def __init__(self, title: str, about: str, placeholder: str, check: Callable[[str], str | None]) -> None:
        super().__init__()
        self.title_text, self.about, self.placeholder, self.check = title, about, placeholder, check

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self.title_text, classes="title", markup=False)
            yield Static(self.about, markup=False)
            yield OneLine(placeholder=self.placeholder, id="answer", compact=True)
            yield Static("", classes="wrong", markup=False)
            yield Static("enter send   esc cancel", classes="keys", markup=False)

    @on(Input.Submitted)
    def send(self, event: Input.Submitted) -> None:
        wrong = self.check(event.value)
        if wrong is None:
            self.dismiss(event.value)
        else:
            self.query_one(".wrong", Static).update(wrong)

    def action_give_up(self) -> None:
        self.dismiss(None)
