"""Keys one after the other: what is typed or pasted waits until the key before it has been acted on.

Textual hands a key to what has the focus when it is read, and acts on it later. Over a slow line keys come several at
a time: the words after ``/`` would then be commands to the list that had the focus before the filter's box.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator

from textual import events
from textual.app import App
from textual.message_pump import MessagePump

from kbtui.tui.leaving import ViewerExit

#: After the key itself: what its action has posted (a box is submitted), and what that does (the focus moves on).
_ROUNDS = 3
#: Keys go on after so long whatever the one before is doing, in seconds: no fault of a pane may cost the keyboard.
PATIENCE_S = 2.0

Typed = events.Key | events.Paste


class KeysInOrder:
    """``hand_on`` gives an event to what has the focus now; it is called on the app's task only."""

    def __init__(self, app: App[ViewerExit], hand_on: Callable[[events.Event], Awaitable[None]]) -> None:
        self._app, self._hand_on = app, hand_on
        self._held: deque[Typed] = deque()
        self._number = 0
        self._patience: asyncio.TimerHandle | None = None

    async def take(self, event: Typed) -> None:
        """Hand an event on, now or when those before it have been acted on."""
        self._held.append(event)
        if self._patience is None:
            await self._next()

    async def _next(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        if not self._held:
            return
        self._number += 1
        number = self._number
        self._patience = asyncio.get_running_loop().call_later(PATIENCE_S, self._give_up, number)
        way = self._way_up()
        await self._hand_on(self._held.popleft())
        await self._follow(number, way, _ROUNDS)

    def _way_up(self) -> Iterator[MessagePump]:
        """Where a key passes that goes to the focus now and is acted on by the app."""
        nodes = (self._app.focused or self._app.screen).ancestors_with_self
        return iter([*(n for n in nodes if n is not self._app), self._app])

    async def _follow(self, number: int, way: Iterator[MessagePump], rounds: int) -> None:
        """Pass through the same queues as the key, behind it; then through those of where the focus is now."""
        if number != self._number:
            return
        for pump in way:
            if pump.call_later(self._follow, number, way, rounds):  # False from one that is being taken down
                return
        if rounds > 1:
            await self._follow(number, self._way_up(), rounds - 1)
        else:
            await self._next()

    def _give_up(self, number: int) -> None:
        if number == self._number:
            self._number += 1
            self._app.call_later(self._next)
