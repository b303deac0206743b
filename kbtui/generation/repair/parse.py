"""Finds the code in whatever a model writes. Pure, deterministic, linear in the reply's length."""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from kbtui.generation.repair.syntax_prefix import longest_syntax, parses
from kbtui.generation.repair.values import FoundCode

_FENCE = re.compile(r"(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[\w+#.-]*)[ \t]*$")
_THINKING = ("think", "thinking", "thought", "reasoning", "scratchpad")
_CODE_START = re.compile(r"^(import |from [\w.]+ import |@\w|def \w|class \w)", re.MULTILINE)
_NOT_PYTHON = frozenset({"bash", "sh", "shell", "console", "text", "txt", "output", "json", "diff", "cpp", "c", "cuda"})
#: Longer replies are cut: no kernel is this long, and a model that repeats itself must not cost minutes.
MAX_REPLY_CHARS = 200_000


@dataclass(frozen=True, slots=True)
class _Block:
    text: str
    info: str
    closed: bool


def find_code(reply: str) -> FoundCode | None:
    """The likeliest kernel source in a reply, or None where there is nothing like code."""
    text = reply[:MAX_REPLY_CHARS].replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").lstrip("\ufeff")
    answer, notes = _after_thinking(text)
    found = _in_fences(answer) or _bare(answer)
    if found is None:
        return None
    return FoundCode(found.code, (*notes, *found.notes), found.cut_off)


def _after_thinking(text: str) -> tuple[str, tuple[str, ...]]:
    """The reply without what the model thought aloud, unless the code is only there."""
    for tag in _THINKING:
        lowered = text.lower()
        closed = lowered.rfind(f"</{tag}>")
        opened = lowered.find(f"<{tag}>")
        if closed >= 0:
            rest = text[closed + len(tag) + 3 :]
            if _CODE_START.search(rest):
                return rest, ("left out what the model thought aloud",)
            return text[: max(opened, 0)] + text[opened + len(tag) + 2 if opened >= 0 else 0 : closed], (
                "took the code from what the model thought aloud",
            )
        if opened >= 0:
            before = text[:opened]
            if _CODE_START.search(before):
                return before, ("left out what the model thought aloud",)
            return text[opened + len(tag) + 2 :], ("took the code from thinking that never ended",)
    return text, ()


def _in_fences(text: str) -> FoundCode | None:
    blocks = [b for b in _blocks(text) if b.text.strip() and b.info.lower() not in _NOT_PYTHON]
    if not any(_worth(b.text) > 0 for b in blocks):
        return None
    # A later block of the same worth is the model's second thought.
    best = max(range(len(blocks)), key=lambda i: (_worth(blocks[i].text), i))
    chosen = blocks[best].text
    joined = "\n\n".join(textwrap.dedent(b.text).strip("\n") for b in blocks)
    notes: tuple[str, ...] = ()
    if len(blocks) > 1:
        whole = _worth(joined) > _worth(chosen) and parses(joined)
        chosen = joined if whole else chosen
        notes = (f"joined {len(blocks)} code blocks",) if whole else (f"chose one of {len(blocks)} code blocks",)
    return _finished(chosen, notes, cut_off=not blocks[best].closed)


def _blocks(text: str) -> Iterator[_Block]:
    """Fenced blocks; one that is never closed runs to the end."""
    mark, info, lines = "", "", list[str]()
    for line in text.split("\n"):
        fence = _FENCE.search(line.rstrip())
        if not mark:
            if fence:
                mark, info, lines = fence["mark"], fence["info"], []
        elif fence and not fence["info"] and fence["mark"].startswith(mark) and line.strip() == fence["mark"]:
            yield _Block("\n".join(lines), info, closed=True)
            mark = ""
        elif line.rstrip().endswith(mark) and not line.strip().startswith(mark):
            yield _Block("\n".join([*lines, line.rstrip()[: -len(mark)]]), info, closed=True)
            mark = ""
        else:
            lines.append(line)
    if mark:
        yield _Block("\n".join(lines), info, closed=False)


def _worth(code: str) -> int:
    """How much a text looks like a whole kernel file."""
    signs = ("triton.jit", "tl.load", "def kernel_function", "](")
    return 2 * sum(sign in code for sign in signs) + bool(_CODE_START.search(textwrap.dedent(code)))


def _bare(text: str) -> FoundCode | None:
    """Code without fences: from the first line that begins like a module."""
    start = _CODE_START.search(text)
    if start is None:
        return None
    return _finished(text[start.start() :], ("took code that no fence marked",), cut_off=False)


def _finished(code: str, notes: tuple[str, ...], cut_off: bool) -> FoundCode:
    dedented = textwrap.dedent(code.expandtabs(4)).strip("\n")
    kept = longest_syntax(dedented)
    dropped = dedented[len(kept) :].strip()
    if dropped:
        notes = (*notes, f"left out {len(dropped.splitlines())} lines at the end that are not Python")
    return FoundCode(kept.rstrip() + "\n", notes, cut_off or bool(dropped))
