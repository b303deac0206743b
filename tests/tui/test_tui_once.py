"""The screen once, as text: in any locale, at any size asked for."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fake_source import FakeSource
from recorded_run import RUN

from kbtui.commands import view
from kbtui.commands.view import Look, draws, snapshot


@contextmanager
def stdout_in(encoding: str) -> Iterator[io.BytesIO]:
    """Standard output as a locale without UTF-8 gives it to a program."""
    kept, raw = sys.stdout, io.BytesIO()
    sys.stdout = io.TextIOWrapper(raw, encoding=encoding, errors="backslashreplace", write_through=True)
    try:
        yield raw
    finally:
        sys.stdout.detach()
        sys.stdout = kept


@pytest.fixture(autouse=True)
def workspace(monkeypatch: pytest.MonkeyPatch, source: FakeSource) -> None:
    monkeypatch.setattr(view, "open_reader", lambda _workspace: source)
    monkeypatch.setattr(view, "pick_run", lambda _reader, run: run)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_what_cannot_be_written_is_drawn_in_ascii(encoding: str) -> None:
    with stdout_in(encoding) as raw:
        snapshot(Path("anywhere"), RUN, Look(4.0, False, None))
    text = raw.getvalue().decode(encoding)
    assert "\\u" not in text
    assert text.isascii() is (encoding != "utf-8")
    assert "1 Rungs" in text


@pytest.mark.parametrize(("columns", "lines"), [("1", "1"), ("59", "15"), ("-5", "0"), ("99999999", "99999999")])
def test_a_size_that_is_none_is_brought_to_one_that_can_be_read(
    monkeypatch: pytest.MonkeyPatch, columns: str, lines: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("LINES", lines)
    with stdout_in("utf-8") as raw:
        snapshot(Path("anywhere"), RUN, Look(4.0, False, None))
    rows = raw.getvalue().decode().splitlines()
    assert "Rungs" in "\n".join(rows)
    assert max(map(len, rows)) <= view.LARGEST[0]
    assert len(rows) <= view.LARGEST[1]


def test_a_stream_without_an_encoding_draws_ascii() -> None:
    assert not draws(None)
    assert not draws(io.TextIOWrapper(io.BytesIO(), encoding="cp437"))
    assert draws(io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
