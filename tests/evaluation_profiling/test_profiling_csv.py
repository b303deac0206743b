import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.evaluation.profiling import metrics
from kbtui.evaluation.profiling.ncu_csv import parse_number, parse_raw_page, profile_of

DATA = Path(__file__).parents[1] / "data" / "ncu"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,234.5", 1234.5),
        ("1.234,5", 1234.5),
        ("1 234,5", 1234.5),
        ("1\u00a0234\u202f567", 1234567.0),
        ("1'234.5", 1234.5),
        ("268,502,016", 268502016.0),
        ("1.234.567", 1234567.0),
        ("3,14", 3.14),
        ("3.142", 3.142),
        ("86.05%", 86.05),
        ("-0.5", -0.5),
        ("1e+06", 1e6),
        ("n/a", None),
        ("nan", None),
        ("", None),
        ("one_pass", None),
    ],
)
def test_numbers_are_read_in_any_locale(text: str, number: float | None) -> None:
    assert parse_number(text) == number


@given(st.floats(0.0, 1e12).map(lambda x: round(x, 2)))
def test_a_number_with_thousands_separators_reads_back(number: float) -> None:
    english = f"{number:,.2f}"
    german = english.replace(",", "_").replace(".", ",").replace("_", ".")
    assert parse_number(english) == pytest.approx(number)
    assert parse_number(german) == pytest.approx(number)


@given(st.text(max_size=300))
def test_any_text_gives_launches_or_a_reason(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(parse_raw_page(text), tuple)


@pytest.mark.parametrize("path", sorted(DATA.glob("*.csv")), ids=lambda p: p.stem)
def test_every_recorded_page_is_read(path: Path) -> None:
    launches = parse_raw_page(path.read_text(encoding="utf-8"))
    assert launches
    profile = profile_of("s", launches)
    assert profile.kernels
    assert (profile.metric(metrics.DURATION) or 0) > 0
    assert sum(pct for _, pct in profile.stalls) == pytest.approx(100.0)


def test_the_synthetic_page_reads_as_written() -> None:
    (launch,) = parse_raw_page((DATA / "softmax_one_pass_synthetic.csv").read_text())
    assert launch.kernel == "one_pass"
    assert launch.value(metrics.DURATION) == 134_912
    assert launch.value(metrics.DRAM_READ) == 268_502_016
    assert launch.value(metrics.stall_metric("gmma")) is None


def _page(units: str, *rows: str) -> str:
    return "\n".join(['"ID","Kernel Name","gpu__time_duration.sum","dram__bytes_read.sum"', units, *rows])


def test_units_other_than_the_base_ones_are_converted() -> None:
    (launch,) = parse_raw_page(_page('"","","us","Mbyte"', '"0","k","134.9","268.5"'))
    assert launch.value("gpu__time_duration.sum") == pytest.approx(134_900)
    assert launch.value("dram__bytes_read.sum") == pytest.approx(268.5e6)


def test_a_page_without_a_units_row_and_with_chatter_between_is_read() -> None:
    text = "the program's own line\n==WARNING== clocks\n" + _page(
        "==PROF== noise", '"0","k","5","n/a"', '"1","k","7","2"'
    )
    first, second = parse_raw_page(text)
    assert first.value("dram__bytes_read.sum") is None
    assert second.value("gpu__time_duration.sum") == 7


def test_launches_add_up_and_rates_are_weighted_by_time() -> None:
    text = "\n".join(
        [
            f'"ID","Kernel Name","{metrics.DURATION}","{metrics.DRAM_READ}","{metrics.DRAM_PCT}"',
            '"","","ns","byte","%"',
            '"0","partial","300","1000","90"',
            '"1","combine","100","10","10"',
        ]
    )
    profile = profile_of("s", parse_raw_page(text))
    assert profile.kernels == ("partial", "combine")
    assert profile.metric(metrics.DURATION) == 400
    assert profile.metric(metrics.DRAM_READ) == 1010
    assert profile.metric(metrics.DRAM_PCT) == pytest.approx(70.0)


def test_no_table_is_a_reason_with_ncus_last_word() -> None:
    with pytest.raises(ValueError, match="ERR_NVGPUCTRPERM"):
        parse_raw_page("==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM\n")
