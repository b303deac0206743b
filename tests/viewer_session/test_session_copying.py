"""Copying: always to a file, to the clipboard where it fits, and it says which."""

import base64

import pytest

from kbtui.tui.copying import OSC52_LIMIT_BYTES, copy

MOST = OSC52_LIMIT_BYTES // 4 * 3


@pytest.mark.parametrize(("n_bytes", "fits"), [(1, True), (MOST, True), (MOST + 1, False), (10 * MOST, False)])
def test_it_is_always_in_a_file_and_in_the_clipboard_where_it_fits(tmp_path, n_bytes, fits):
    clipboard, path = [], tmp_path / "new" / "c0001.py"
    told = copy("x" * n_bytes, path, clipboard.append)
    assert path.read_text() == "x" * n_bytes
    assert clipboard == (["x" * n_bytes] if fits else [])
    assert ("clipboard too" in str(told)) == fits
    assert str(path) in str(told)
    assert all(len(base64.b64encode(text.encode())) <= OSC52_LIMIT_BYTES for text in clipboard)


def test_bytes_count_and_not_characters(tmp_path):
    clipboard: list[str] = []
    copy("é" * (MOST - 10), tmp_path / "c.py", clipboard.append)
    assert clipboard == []


@pytest.mark.parametrize("n_bytes", [1, 10 * MOST])
def test_a_folder_that_cannot_be_is_said_and_ends_nothing(tmp_path, n_bytes):
    (tmp_path / "file").write_text("")
    clipboard: list[str] = []
    told = copy("x" * n_bytes, tmp_path / "file" / "c.py", clipboard.append)
    assert "no file: " in str(told)
    assert bool(clipboard) == (n_bytes == 1)
