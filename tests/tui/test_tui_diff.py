"""The diff's pairing and layout, with their laws."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from softmax_kernels import source

from kbtui.tui.view.diff import Change, changed_spans, diff_sources, layout, row_of_change, wrap_points

_line = st.text(st.sampled_from("ab (=1_"), max_size=12)
_text = st.lists(_line, max_size=14).map("\n".join)


@given(_text, _text)
def test_every_line_of_both_sides_is_shown_once_and_in_order(left: str, right: str) -> None:
    diff = diff_sources(left, right)
    assert [r.left for r in diff.rows if r.left is not None] == list(range(len(left.splitlines())))
    assert [r.right for r in diff.rows if r.right is not None] == list(range(len(right.splitlines())))


@given(_text, _text)
def test_rows_shown_as_unchanged_are_equal(left: str, right: str) -> None:
    diff = diff_sources(left, right)
    for row in diff.rows:
        if row.kind is Change.SAME:
            assert row.left is not None
            assert row.right is not None
            assert diff.left[row.left] == diff.right[row.right]


@given(_text)
def test_a_source_against_itself_has_no_change(text: str) -> None:
    assert diff_sources(text, text).changes == ()


@given(_text, _text, st.integers(8, 40), st.booleans(), st.sampled_from([None, 0, 3]))
def test_layout_shows_every_changed_character_of_both_sides(
    left: str, right: str, width: int, beside: bool, context: int | None
) -> None:
    diff = diff_sources(left, right)
    rows = layout(diff, width, beside, context)
    shown_left = {c.number for r in rows if (c := r.left) is not None}
    shown_right = {c.number for r in rows if (c := r.right) is not None}
    for row in diff.rows:
        if row.kind in (Change.CHANGED, Change.REMOVED):
            assert row.left in shown_left
        if row.kind in (Change.CHANGED, Change.ADDED):
            assert row.right in shown_right
    if diff.changes:
        assert rows[row_of_change(rows, len(diff.changes) - 1)].change == len(diff.changes) - 1


@given(st.text(st.sampled_from("abc_ (,中\u0301é"), max_size=120), st.integers(8, 40))
def test_wrapped_pieces_put_together_are_the_line(text: str, width: int) -> None:
    pieces = wrap_points(text, width)
    assert "".join(text[a:b] for a, b in pieces) == text
    assert all(cell_len(text[a:b]) <= width for a, b in pieces)


def test_words_that_changed_are_found_inside_a_line() -> None:
    left, right = changed_spans(
        "    x = tl.load(x_ptr + row * stride)", "    x = tl.load(x_ptr + rows[:, None] * stride)"
    )
    assert [("    x = tl.load(x_ptr + row * stride)")[a:b] for a, b in left] == ["row"]
    assert [("    x = tl.load(x_ptr + rows[:, None] * stride)")[a:b] for a, b in right] == ["rows[:, None]"]


def test_one_changed_constant_is_one_change_on_one_line() -> None:
    diff = diff_sources(source("one_row", warps=8), source("one_row", warps=16))
    assert len(diff.changes) == 1
    row = diff.rows[diff.changes[0]]
    assert row.kind is Change.CHANGED
    assert row.right is not None
    (span,) = row.right_spans
    assert diff.right[row.right][slice(*span)] == "16"


def test_unchanged_lines_far_from_a_change_are_folded() -> None:
    diff = diff_sources(source("one_row", warps=8), source("one_row", warps=16))
    rows = layout(diff, 60, True, 3)
    assert sum(r.fold for r in rows) > 10
    assert all(r.fold == 0 for r in layout(diff, 60, True, None))
