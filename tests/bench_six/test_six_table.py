"""The document made of what is kept: never blank where nothing was measured, modelled numbers apart, plots that
parse."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from benchmarks.pool_ablations import ABLATIONS
from benchmarks.six.cases import load_cases
from benchmarks.six.headline import headline
from benchmarks.six.ladder import ladder_words
from benchmarks.six.parts import TAKEN, Parts, read_parts, table_rows
from benchmarks.six.plots import plots, shares
from benchmarks.six.record import MODELLED, REPLAYED, Against, CaseRecord, Earlier, OnA100, write_record
from benchmarks.six.summary import name_of, summary
from benchmarks.six.table import section
from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.measurement import Outcome
from tests.bench_six.six_records import against, case, contest, record
from tests.fakes.scripts import load_script

ROOT = Path(__file__).parents[2]
CASES = load_cases()
LARGE, CONV = case("softmax-4096x16384-fp32"), case("group_conv-8x256x56x56dw-fp16")
PARTS = read_parts()


def generator() -> ModuleType:
    return load_script(ROOT / "docs/results.py")


def measured() -> dict[str, CaseRecord]:
    held = contest(
        against("first", 2.0), against("draft", 1.1), against("eager", 1.28), against("compile", 1.05),
        Against("max-autotune", error="no answer in 150 s"), against("copy", 2.5),
        Against("liger", error="liger_kernel is not installed"),
    )  # fmt: skip
    lost = contest(against("eager", 0.9), against("compile", 1.4), against("copy", 9.0))
    return {LARGE.name: record(LARGE, held), CONV.name: record(CONV, lost)}


def row(text: str, starts: str, of: int = 0) -> list[str]:
    line = [line for line in text.splitlines() if line.startswith(f"| {starts} |")][of]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_with_nothing_measured_every_case_stands_there_with_its_target_and_says_so() -> None:
    text = section(CASES, {}, PARTS)
    rows = [line for line in text.splitlines() if re.match(r"\| \w+ fp(16|32) ", line)]
    assert len(rows) == len(CASES)
    assert row(text, "softmax fp32 16×16384") == [
        "softmax fp32 16×16384", "1.34 (0.0073)", "1.21", "0.68", "not measured", "—", "—", "—", "not measured",
    ]  # fmt: skip
    assert "0 of 20 cases are measured, 20 not." in text
    assert text.count(":** not measured.") == 5
    assert ":** not compiled yet." in text
    assert [line for line in text.splitlines() if line.startswith("###")] == [
        "### Every case", "### What each part of a search is worth", "### With the ladder and without it, on a GPU",
    ]  # fmt: skip
    assert plots(CASES, {}) == {}


@pytest.mark.parametrize("n_measured", [0, 1, 2])
def test_no_cell_of_any_table_is_blank(n_measured: int) -> None:
    text = section(CASES, dict(list(measured().items())[:n_measured]), PARTS)
    cells = [cell for line in text.splitlines() if line.startswith("|") for cell in line.strip("|").split("|")]
    assert cells
    assert all(cell.strip() for cell in cells)


def test_the_summary_answers_each_target_with_what_falls_short_by_name() -> None:
    text = summary(CASES, measured(), "not measured.")
    short = "; not: group_conv fp16 8×256×56×56dw (-40.4 %)."
    assert f"speedup over eager:** passed in 0 of 2, reached within the tolerance in 1 more{short}" in text
    assert "torch.compile:** 1 of 2; not: group_conv fp16 8×256×56×56dw: PyTorch is kept." in text
    assert "**Beside no search:** over the first kernel 2.00×; over the best draft 1.10×." in text
    assert "memory bounds:** 2 of 2." in text
    assert "no spills:** the champions of 2 of 2." in text
    met = contest(against("eager", 1.4), Against("liger", 90.0, 0.9, 0.89, 0.91, "slower", 36, 3), against("copy", 2.0))
    slow = replace(met, us=140.0)
    other = summary(CASES, {LARGE.name: record(LARGE, slow)}, "")
    assert "faster in 0 of 1 meeting; not: softmax fp32 4096×16384 0.90× of liger's, slower." in other
    doubtful = contest(against("eager", 1.4), against("liger", 1.008, outcome=Outcome.UNCLEAR))
    third = summary(CASES, {LARGE.name: record(LARGE, doubtful)}, "")
    assert "faster in 0 of 1 meeting; not: softmax fp32 4096×16384 1.01× of liger's, unclear." in third
    assert "memory bounds:** 0 of 1; not: softmax fp32 4096×16384 71 %." in other


def study(**rows: tuple[float | None, float | None]) -> dict[str, object]:
    """One pool; each row by what it took until within 2 %, GPU seconds and wall seconds."""
    kept = [
        {"strategy": name.replace("_", " "), "found_s": gpu_s, "found_wall_s": wall_s, "short_mean": 0.004,
         "crownings": 12, "wrong_crownings": 1}
        for name, (gpu_s, wall_s) in rows.items()
    ]  # fmt: skip
    return {"command": "study", "date": "2026-12-01", "pools": [{"name": "softmax-x", "rows": kept, "ablations": []}]}


REPLIES = {"answers": [{"generator": "llm", "problem": "softmax", "outcome": "slower"},
                       {"generator": "rewrites", "problem": "softmax", "outcome": "faster"}]}  # fmt: skip


def test_every_part_that_was_asked_for_has_a_row_and_one_that_a_pool_cannot_show_says_so() -> None:
    head, rows = table_rows(Parts(study(this_scheduler=(40.0, 50.0), without_hints=(None, None)), REPLIES))
    assert head == ("search", "softmax-x", "new leaders, of them wrong")
    found = {row[0]: row[1:] for row in rows}
    assert found["this scheduler"] == ("40 s; 0.4 % short", "12, 1")
    assert found["without hints"] == ("never; 0.4 % short", "12, 1")
    assert found["without paired adjudication"] == ("this pool cannot show it", "—")
    assert found["rewrites replaced by a language model's replies"] == (
        "0 of 1 replies faster, 1 of 1 rewrites", "—",
    )  # fmt: skip
    assert {ablation.name for ablation in ABLATIONS} <= set(TAKEN)


def searched_both_ways(sample: str, on_s: float, off_s: float | None, *shapes: str, seed: int = 0) -> dict[str, object]:
    on = {"within_wall_s": on_s, "wall_s": 40.0, "open_wall_s": 4.0, "within": "c0003", "n_candidates": 30}
    off = {"within_wall_s": off_s, "wall_s": off_s or 80.0, "open_wall_s": 5.0}
    device = {"name": "NVIDIA H200", "uuid": "GPU-1"}
    return {"sample": sample, "seed": seed, "shapes": shapes, "on": on, "off": off, "command": "off.py",
            "date": "2026-12-01 10:00Z", "device": device}  # fmt: skip


def test_what_the_ladder_saves_is_told_of_pools_and_of_a_gpu() -> None:
    pools = study(this_scheduler=(40.0, 50.0), ladder_off=(100.0, 200.0))
    told = ladder_words(Parts(pools, REPLIES))
    assert told == "on recorded pools in 1 of 1, of the time without it: softmax 0.25; on a GPU not measured."
    both = [
        searched_both_ways("softmax", 12.0, 48.0, "a", "b"),
        searched_both_ways("mat_vec", 12.0, None, "a", "b", seed=3),
        searched_both_ways("mat_vec-a", 12.0, 16.0, "a"),
    ]
    told = ladder_words(Parts(study(this_scheduler=(40.0, 50.0)), REPLIES, both))
    assert told == (
        "on a GPU in 2 of 2 searches of several shapes: softmax 0.25, mat_vec (seed 3) under 0.15; "
        "on a GPU in 0 of 1 searches of one shape: mat_vec-a 0.75."
    )


def test_every_search_that_ran_both_ways_has_a_row() -> None:
    both = [searched_both_ways("softmax", 12.0, 21.0, "a", "b"), searched_both_ways("mat_vec", 12.0, None, "a")]
    text = section(CASES, measured(), Parts(study(), REPLIES, both))
    assert row(text, "softmax")[1:] == ["2", "12.0", "21.0", "0.57", "0.50", "c0003", "30"]
    assert row(text, "mat_vec")[1:] == ["1", "12.0", "not in 80", "under 0.15", "under 0.11", "c0003", "30"]
    assert "2 in all, on 1 NVIDIA H200;" in text.replace("\n", " ")
    assert "`off.py`, 2026-12-01." in text
    assert "With the ladder and without it, on a GPU" not in section(CASES, measured(), Parts(study(), REPLIES))


def test_what_was_measured_before_stands_beside_what_counts_now() -> None:
    found = measured()
    (name, now), *_ = found.items()
    same = Earlier("c0007", "GPU-1", "2026-11-30T09:08:07Z", "an earlier call", 101.5, 1.25, 1.24, 1.26)
    earlier = (same, replace(same, champion="c0009", us=90.0), replace(same, ratio=None, us=95.0))
    text = section(CASES, found | {name: replace(now, earlier=earlier)}, PARTS)
    assert "in earlier calls, on 2 cards in all" in text
    assert "- searched before `--again`, NVIDIA H200, 2026-11-30, `an earlier call`" in text
    assert not {"90.00 µs", "95.00 µs"} & set(re.findall(r"[\d.]+ µs", text))
    assert "1.250 (101.50 µs, 2026-11-30 09:08Z), now 1.280 (100.00 µs, 2026-12-01 10:00Z)" in text
    assert "in earlier calls" not in section(CASES, found, PARTS)


def test_all_results_of_every_file_are_read(tmp_path: Path) -> None:
    kept = {
        "scheduler-study.json": study(),
        "llm-contest-h200-2026-11-30.json": REPLIES,
        "ladder-off-a.json": [{"sample": "softmax"}, {"sample": "mat_vec"}],
        "ladder-off-b.json": [{"sample": "rms_norm"}],
    }
    for name, content in kept.items():
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    assert [one["sample"] for one in read_parts(tmp_path).without_ladder] == ["softmax", "mat_vec", "rms_norm"]


def test_a_measured_case_stands_beside_its_target_with_its_interval_and_verdict() -> None:
    text = section(CASES, measured(), PARTS)
    assert row(text, "softmax fp32 4096×16384")[4:] == [
        "100.00", "1.280 (1.275–1.285)", "1.22 (compile)", "reached", "win",
    ]  # fmt: skip
    assert row(text, "group_conv fp16 8×256×56×56dw")[5:] == [
        "0.900 (0.895–0.905)", "0.64 (compile)", "missed (-40.4 %)", "PyTorch is kept",
    ]  # fmt: skip
    assert row(text, "softmax fp32 16×16384")[4:] == ["not measured", "—", "—", "—", "not measured"]
    assert "2 of 20 cases are measured, 18 not." in text
    assert "- liger: liger_kernel is not installed (softmax fp32 4096×16384)" in text
    assert "- max-autotune: no answer in 150 s (softmax" in text
    stopped = "- group_conv fp16 8×256×56×56dw, PyTorch is kept: too few programs (compiled); the operation is bound by"
    assert f"{stopped} memory" in text


def test_a_win_that_leaves_bandwidth_lying_has_told_what_stops_it() -> None:
    held = measured()[LARGE.name]
    assert f"- {name_of(LARGE)}, win" not in section(CASES, {LARGE.name: held}, PARTS)
    slow = replace(held, contest=replace(held.contest, us=175.0))
    text = section(CASES, {LARGE.name: slow}, PARTS)
    assert f"- {name_of(LARGE)}, win, 71 % of the bandwidth: too few programs (compiled); the operation is" in text
    assert row(text, name_of(LARGE), of=2)[-1] == "no"


def test_the_other_tables_hold_the_measured_cases_alone() -> None:
    text = section(CASES, measured(), PARTS)
    spent = row(text, "softmax fp32 4096×16384", of=3)
    assert spent[1:] == [
        "45", "18 (14)", "30", "70", "wrong_values 2", "screen 20", "84 %", "61 %", "screen 33 %, confirm 44 %",
    ]  # fmt: skip
    assert row(text, "softmax fp32 4096×16384", of=1)[2:] == [
        "2.000 (1.995–2.005)", "1.100 (1.095–1.105)", "not installed", "not measured",
    ]  # fmt: skip
    assert row(text, "softmax fp32 4096×16384", of=2)[1] == "memory"
    assert row(text, "softmax fp32 4096×16384", of=4)[1:] == ["fits", "64", "4.0", "—"]


def test_a_champion_that_does_not_fit_an_a100_has_its_substitute_named() -> None:
    kept = measured()
    other = OnA100(False, "softmax_row spills 24 bytes a thread", (), "c0009", "two rows a program", "#", 3)
    kept[LARGE.name] = replace(kept[LARGE.name], a100=other)
    found = row(section(CASES, kept, PARTS), "softmax fp32 4096×16384", of=4)
    assert (found[1], found[4]) == ("softmax_row spills 24 bytes a thread", "c0009 two rows a program")


@pytest.mark.parametrize(("kind", "title"), [(MODELLED, "Modelled"), (REPLAYED, "Replayed")])
def test_what_was_not_measured_has_a_table_of_its_own_and_no_time(kind: str, title: str) -> None:
    other = record(CONV, contest(against("first", 3.25), against("eager", 7.77)), kind, DATA_SHEETS["a100"])
    text = section(CASES, {**measured(), CONV.name: other}, PARTS)
    before, found, after = text.partition(f"### {title}")
    assert found
    assert "3.250" in after
    assert "7.77" not in text
    assert row(before, "group_conv fp16 8×256×56×56dw")[4] == "not measured"


def test_plots_are_pictures_of_the_measured_cases() -> None:
    drawn = plots(CASES, {**measured(), "x": record(LARGE, contest(against("eager", 2.0)), MODELLED)})
    assert set(drawn) == {"six-speedups.svg", "six-searches.svg", "six-budgets.svg"}
    for name, text in drawn.items():
        root = ElementTree.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        said = " ".join(root.itertext())
        assert "softmax fp32 4096x16384" in said
        assert said.count("not measured") == (18 if name == "six-speedups.svg" else 0)
        assert ("rms_norm" in said) == (name == "six-speedups.svg")


def test_a_budgets_shares_sum_up_to_the_whole() -> None:
    found = dict(shares(measured()[LARGE.name]))
    assert sum(found.values()) == pytest.approx(1.0)
    assert found["screen"] == pytest.approx(15.0 / 45.0)


def test_the_generator_changes_what_is_between_its_marks_alone(tmp_path: Path) -> None:
    made = generator()
    for name, kept in measured().items():
        write_record(tmp_path / f"{name}.json", kept)
    text = f"# Results\n\nby hand\n\n{made.BEGIN}\nas it was\n{made.END}\n\nmore by hand\n"
    files: Mapping[str, str] = made.documents(tmp_path, text)
    assert files["results.md"].startswith("# Results\n\nby hand\n\n")
    assert files["results.md"].endswith("\n\nmore by hand\n")
    assert "as it was" not in files["results.md"]
    assert made.documents(tmp_path, files["results.md"]) == files
    assert all(f"]({name})" in files["results.md"] for name in files if name.endswith(".svg"))
    with pytest.raises(ValueError, match="lacks the mark"):
        made.with_section("nothing", "made")


def test_plots_that_nothing_is_left_of_go(tmp_path: Path) -> None:
    made = generator()
    (tmp_path / "six-speedups.svg").write_text("old")
    made.write({"results.md": "text"}, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["results.md"]


def test_the_document_is_what_the_generator_makes_of_the_kept_results() -> None:
    made = generator()
    files = made.documents(made.KEPT, made.DOCUMENT.read_text(encoding="utf-8"))
    for name, text in files.items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text, "run: python docs/results.py"
    front = made.README.read_text(encoding="utf-8")
    assert made.front_page(made.KEPT, front) == front, "run: python docs/results.py"


def test_the_front_page_sets_a_win_in_bold_and_counts_what_is_measured() -> None:
    text = headline(CASES, measured())
    assert "2 of 20 cases measured: faster than eager and than every mode of torch.compile in 1." in text
    assert "passed in 0, within the tolerance in 1, short of it in 1. Beside no search: over the first kernel" in text
    assert row(text, "softmax fp32") == ["softmax fp32", "4096×16384", "**1.28×**", "1.22×"]
    assert row(text, "group_conv fp16") == ["group_conv fp16", "8×256×56×56dw", "0.90×", "0.64×"]
    both = {**measured(), case("softmax-16x16384-fp32").name: measured()[LARGE.name]}
    assert row(headline(CASES, both), "softmax fp32")[1:3] == ["4096×16384 · 16×16384", "**1.28×** · **1.28×**"]
