"""The viewer as an application: polls the feed, keeps the moment, hands it to the screen in front."""

import os
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import App, SuspendNotSupported, SystemCommand
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.message import Message
from textual.screen import Screen

from kbtui.errors import UsageError
from kbtui.tui.copying import copy
from kbtui.tui.editor import edit
from kbtui.tui.feed import Asked, Declared, Failure, Feed, News
from kbtui.tui.glyphs import ASCII, UNICODE, Glyphs
from kbtui.tui.keymap import shown_key
from kbtui.tui.keys import KEYS, bindings
from kbtui.tui.leaving import ViewerExit, leave
from kbtui.tui.moment import Delta, Moment, Older
from kbtui.tui.reading import Beat
from kbtui.tui.safe import NothingButText
from kbtui.tui.screens.keyed import KeyedScreen, too_small
from kbtui.tui.source import RunSource
from kbtui.tui.text import Told
from kbtui.tui.theme import DARK, LIGHT, default_theme
from kbtui.tui.typed import KeysInOrder
from kbtui.tui.widgets.line_list import LineList

#: A sentence the viewer says stays this long, in seconds.
_SAID_FOR_S = 6.0
#: The same of what an answer follows: as long as an engine may take to start.
_STARTS_FOR_S = 900.0


@dataclass(frozen=True, slots=True)
class ViewerOptions:
    """How the viewer behaves.

    Attributes:
        refresh_hz: how often the store is looked at; the screen is redrawn only where something changed.
        ascii_only: draw with ASCII alone.
        readonly: refuse every command.
        theme: a theme's name; None chooses by the terminal.
        copy_folder: where ``y`` writes sources.
        resume: starts the engine on a run again and says in one line how it went; None where that is not possible.
        keymap: key ids to other keys.
    """

    refresh_hz: float = 4.0
    ascii_only: bool = False
    readonly: bool = False
    theme: str | None = None
    copy_folder: Path = field(default_factory=lambda: Path(tempfile.gettempdir()) / "kbtui-copied")
    resume: Callable[[str], str] | None = None
    keymap: tuple[tuple[str, str], ...] = ()


class Arrived(Message):
    """The feed's thread has read something."""

    def __init__(self, news: News) -> None:
        super().__init__()
        self.news = news


class Viewer(App[ViewerExit], inherit_bindings=False):
    """``moment`` is the run on the screen, None on the list of runs."""

    TITLE = "kbtui"
    CSS_PATH = "viewer.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("palette", "leave"),
        Binding("ctrl+c", "help_quit", show=False, system=True),
    ]
    ENABLE_COMMAND_PALETTE = True

    def __init__(
        self,
        source: RunSource,
        run: str | None,
        options: ViewerOptions | None = None,
        executor: Executor | None = None,
        editor: Callable[[str, str], str | None] | None = None,
    ) -> None:
        no_color = "NO_COLOR" in os.environ
        super().__init__(ansi_color=True if no_color else None)
        self.options = options or ViewerOptions()
        self._filters.append(NothingButText(self.options.ascii_only))
        self.glyphs: Glyphs = ASCII if self.options.ascii_only else UNICODE
        self.feed = Feed(source, executor or ThreadPoolExecutor(1, "kbtui-feed"), self._tell)
        self.moment: Moment | None = Moment(run) if run else None
        self.frozen = False
        self.said = Told()
        self._said_timer = 0
        self._editor = editor
        self._typed = KeysInOrder(self, super().on_event)
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        environment = (os.environ.get("TERM", ""), os.environ.get("COLORTERM", ""))
        self.theme = self.options.theme or default_theme(*environment, no_color)
        if self.options.ascii_only:
            self.animation_level = "none"
        if self.options.keymap:
            self.set_keymap(dict(self.options.keymap))

    def get_css_variables(self) -> dict[str, str]:
        """The theme's colours, and one more for what matters less."""
        theme = self.current_theme
        dim = (
            "ansi_bright_black"
            if theme.ansi
            else Color.parse(theme.background or ("#121212" if theme.dark else "#e0e0e0"))
        )
        if isinstance(dim, Color):
            dim = dim.blend(Color.parse(theme.foreground or ("#e0e0e0" if theme.dark else "#202020")), 0.62).hex
        few = {"border": "ansi_bright_black"} if theme.ansi else {}
        return {**super().get_css_variables(), "kb-dim": dim, **few}

    def on_mount(self) -> None:
        self.push_screen(self._front())
        self.set_interval(1 / self.options.refresh_hz, self.tick)
        self.tick()  # the feed reads while the screen is being built

    async def on_event(self, event: events.Event) -> None:
        """What is typed waits its turn."""
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            await self._typed.take(event)
        else:
            await super().on_event(event)

    def on_unmount(self) -> None:
        self.feed.close()

    def tick(self) -> None:
        """Look at the store, unless the screen is held still."""
        if self.frozen:
            return
        if self.moment is not None:
            self.feed.poll(self.moment.run)
        else:
            self.feed.list_runs()

    def _tell(self, news: News) -> None:
        self.post_message(Arrived(news))

    def on_arrived(self, message: Arrived) -> None:
        """Take in what was read, then tell the screens; only this thread changes the moment."""
        if self._take_in(message.news):
            for screen in self._screens():
                screen.hear(message.news)

    def _take_in(self, news: News) -> bool:
        """Whether the screens should hear of it: of another run they should not."""
        moment = self.moment
        match news:
            case Delta(run=run) | Older(run=run) | Beat(run=run) | Declared(run=run) if (
                moment is None or run != moment.run
            ):
                return False
            case Delta() as delta if moment is not None:
                known = moment.known
                moment.apply(delta)
                if moment.state.started is not None and not known:
                    self.feed.declare(moment.run, moment.state.started.problem_path)
            case Older() as older if moment is not None:
                moment.add(older)
            case Beat(engine=engine) if moment is not None:
                moment.engine = engine
            case Declared(problem=problem, hints=hints) if moment is not None:
                moment.problem, moment.hints = problem, hints
            case Failure(what=what):
                self.say(what)
            case Asked(run=run, kind=kind, argument=argument, command_id=number):
                if moment is not None and moment.run == run:
                    moment.inserted(kind, argument, number)
                self.tick()
            case _:
                pass
        return True

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """Of a long run: read on at the end of a list, and what the candidate under the cursor was made from."""
        if self.moment is None or not self.moment.from_seq:
            return
        if event.lines.cursor >= event.lines.n_rows - 2:
            self.feed.more(self.moment.run)
        tried = self.moment.state.tried.get(event.key or "")
        missing = [p for p in tried.candidate.parents if p not in self.moment.state.tried] if tried else []
        if missing:
            self.feed.about(self.moment.run, missing)

    def _screens(self) -> list[KeyedScreen]:
        """Screens that have their widgets: not those that are being built or taken down."""
        return [s for s in self.screen_stack if isinstance(s, KeyedScreen) and s.built]

    def _front(self) -> KeyedScreen:
        """The screen that a moment, or its absence, is shown on; only what is shown is imported."""
        if self.moment is None:
            from kbtui.tui.screens.runs import Runs

            return Runs(self.glyphs)
        from kbtui.tui.screens.dashboard import Dashboard

        return Dashboard(self.glyphs)

    def say(self, told: str | Told, for_s: float | None = None) -> None:
        """Answer a key on the status line, for a few seconds or for ``for_s``."""
        self.said = told if isinstance(told, Told) else Told(told)
        self._said_timer += 1
        mine = self._said_timer
        self.set_timer(for_s or _SAID_FOR_S, lambda: self._unsay(mine))
        self._show_said()

    def _unsay(self, number: int) -> None:
        if number == self._said_timer:
            self.said = Told()
            self._show_said()

    def _show_said(self) -> None:
        for screen in self._screens():
            screen.show_status()

    def open_run(self, run: str) -> None:
        self.moment = Moment(run)
        self.feed.start_over()
        self.frozen = False
        self.switch_screen(self._front())
        self.call_after_refresh(self.tick)

    def list_runs(self) -> None:
        self.moment = None
        self.frozen = False
        self.switch_screen(self._front())
        self.call_after_refresh(self.tick)

    def resume_engine(self) -> None:
        """Start the engine on this run again, or say why that makes no sense."""
        moment, resume = self.moment, self.options.resume
        if moment is None or not moment.known:
            return self.say("the run has no events yet; wait for the engine's first")
        if moment.engine_here and moment.state.ended is None:
            paused = "; it is paused, p resumes" if moment.state.paused else ""
            return self.say(f"the engine is alive and works on this run{paused}")
        if self.options.readonly or resume is None:
            return self.say(f"not from here; in a shell: kbtui resume {moment.run}")
        self.say(
            f"starting the engine on {moment.run} again ...", _STARTS_FOR_S
        )  # its answer comes in this one's place
        self.feed.work(lambda: resume(moment.run))
        return None

    def edit(self, text: str, name: str) -> str | None:
        """Hand the terminal to the user's editor. Raises UsageError where this terminal cannot be handed over."""
        if self._editor is not None:
            return self._editor(text, name)
        try:
            with self.suspend():
                return edit(text, name)
        except SuspendNotSupported:
            raise UsageError("this terminal cannot be handed to an editor", "use `kbtui submit FILE`") from None

    def copy_source(self, candidate: str, text: str) -> None:
        self.say(copy(text, self.options.copy_folder / f"{candidate}.py", self.copy_to_clipboard))

    def action_help_quit(self) -> None:
        """ctrl+c is what a hand does to get out of anything: say how, rather than end what someone watches."""
        self.say("q leaves; the search goes on without you")

    def action_leave(self) -> None:
        self.exit(leave(self.moment))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette: every key of the table by name, and Textual's themes."""
        for command in super().get_system_commands(screen):
            if command.title in ("Theme", "Screenshot"):
                yield command
        here = isinstance(screen, KeyedScreen)
        for key in KEYS:
            if here or key.action.startswith("app."):
                title = f"{key.label or key.id.replace('_', ' ')}".capitalize()
                yield SystemCommand(
                    title,
                    f"{key.help} ({shown_key(key, self.options.keymap)})",
                    lambda a=key.action: self.call_later(self.run_action, a, screen),
                )

    def on_resize(self, event: events.Resize) -> None:
        for screen in self.screen_stack:
            screen.set_class(too_small(event.size), "too-small")
