"""A case from start to document, on a recorded pool in place of a GPU: interrupted, gone on with, and done once."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import bench_six
from benchmarks.six.cases import load_cases, write_problem
from benchmarks.six.parts import read_parts
from benchmarks.six.plots import plots
from benchmarks.six.record import (
    CHAMPION,
    DRAFT,
    MEASURED,
    REPLAYED,
    CaseRecord,
    OnA100,
    earlier_of,
    read_record,
    write_record,
)
from benchmarks.six.search import ROOT, Wanted, next_command, reader_of, search, state_of
from benchmarks.six.table import section
from kbtui.domain.event import Budget, EndReason, RunEnded, RunResumed
from kbtui.engine.session import run_session
from kbtui.engine.spec import RunSpec
from kbtui.errors import EngineError
from store.lock import EngineLock
from store.workspace import open_workspace
from tests.bench_six.six_records import case

OF = case("softmax-4096x16384-fp32")
POOL = ROOT / "benchmarks/pools/softmax-h200-full.jsonl.gz"
DEVICE = f"replay:{POOL}"
SECONDS = 120.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of one case whose search was interrupted before its first candidate and then gone on with."""
    folder = tmp_path_factory.mktemp("six")
    workspace, problem = folder / "work" / OF.name / "workspace", folder / "work" / OF.name / "problem"
    write_problem(OF, problem)
    spec = RunSpec(str(workspace), str(problem), DEVICE, Budget(wall_s=SECONDS))
    run_session(spec, lambda _: None, lambda *_: None, lambda engine: engine.interrupt("a test"))
    assert call(folder) == 0
    return folder


@pytest.fixture(scope="module")
def record(folder: Path) -> CaseRecord:
    return read_record(folder / "out" / f"{OF.name}.json")


def call(folder: Path, *more: str) -> int:
    words = ["--out", folder / "out", "--work", folder / "work", "--device", DEVICE, "--cases", OF.name,
             "--seconds", f"{SECONDS:g}", "--no-a100", *more]  # fmt: skip
    return bench_six.main([str(word) for word in words])


def test_the_interrupted_search_was_gone_on_with(folder: Path, record: CaseRecord) -> None:
    with reader_of(folder / "work" / OF.name / "workspace") as reader:
        (run,) = reader.runs()
        events = [envelope.event for envelope in reader.envelopes(run.run)]
    assert record.story.run == run.run
    assert sum(isinstance(event, RunResumed) for event in events) == 1
    assert next(event.reason for event in events if isinstance(event, RunEnded)) is EndReason.STOPPED
    assert record.story.ended.startswith(("budget", "exhausted"))


def test_what_is_kept_can_be_checked_by_a_stranger(folder: Path, record: CaseRecord, tmp_path: Path) -> None:
    champion = record.kernel(CHAMPION)
    assert champion is not None
    assert (record.kind, record.contest.champion) == (REPLAYED, champion.candidate)
    assert "def kernel_function" in champion.source
    bundle, clone = folder / "out" / f"{OF.name}.bundle", tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "-b", f"runs/{record.story.run}", bundle, clone], check=True)
    assert (clone / "kernel.py").read_text().startswith(champion.source[:60])


def test_the_story_adds_up(record: CaseRecord) -> None:
    story = record.story
    assert 0.0 < (story.within_wall_s or 0.0) <= story.wall_s <= SECONDS + 60.0
    assert (story.within_gpu_s or 0.0) <= story.gpu_s
    assert sum(spent.wall_s for spent in story.spent) + story.open_s <= story.wall_s + 1e-6
    assert [s.score for s in story.steps] == sorted(s.score for s in story.steps)
    fallen = sum(n for _, n in (*story.rejected, *story.unverified, *story.pruned))
    assert fallen <= story.n_candidates <= story.n_evaluations
    draft = record.kernel(DRAFT)
    assert draft is not None
    assert draft.operator.startswith("playbook: ")
    assert 1 <= story.n_drafts <= story.n_candidates


def test_a_case_that_is_finished_is_not_done_again(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file() and p.suffix in (".json", ".log")}
    assert call(folder) == 0
    assert {p: p.stat().st_mtime_ns for p in before} == before
    assert "nothing to do" in capfd.readouterr().err


def test_where_only_the_contest_is_missing_nothing_is_searched_again(folder: Path, record: CaseRecord) -> None:
    (folder / "out" / f"{OF.name}.json").unlink()
    (folder / "work" / OF.name / "contest.json").unlink()
    log = folder / "work" / OF.name / "search.log"
    before = log.stat().st_mtime_ns
    assert call(folder, "--pack", str(folder / "six.tgz")) == 0
    again = read_record(folder / "out" / f"{OF.name}.json")
    assert log.stat().st_mtime_ns == before
    assert again.story == record.story
    assert (folder / "six.tgz").stat().st_size > 1000


def test_what_is_kept_is_measured_anew_out_of_its_bundle_and_nothing_is_searched(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "out", tmp_path / "out")
    path, bundle = tmp_path / "out" / f"{OF.name}.json", tmp_path / "out" / f"{OF.name}.bundle"
    record, before = read_record(path), bundle.read_bytes()
    fits = OnA100(True, None, ())
    write_record(path, replace(record, a100=fits))
    assert call(tmp_path, "--again", "--pairs", "11") == 0
    again = read_record(path)
    assert again.story == record.story
    assert (again.seed, again.seconds, again.kernels) == (record.seed, record.seconds, record.kernels)
    assert again.contest.command.endswith("--again --pairs 11")
    assert again.phases[:3] == record.phases[:3]
    assert again.a100 == fits
    assert bundle.read_bytes() == before
    assert not list(tmp_path.rglob("search.log"))
    assert call(tmp_path, "--again") == 0
    third = read_record(path)
    assert third.contest.command.endswith("--again")
    assert third.earlier == (earlier_of(record), earlier_of(again))
    assert [e.champion for e in third.earlier] == [record.contest.champion] * 2


def test_what_is_not_kept_is_not_measured_again(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert call(tmp_path, "--again") == 0
    assert "nothing to do" in capfd.readouterr().err


def damaged(out: Path, how: str) -> str:
    """Damages what is kept of the case; returns the words that tell of it."""
    record, bundle = out / f"{OF.name}.json", out / f"{OF.name}.bundle"
    kept = read_record(record)
    if how == "no bundle":
        bundle.unlink()
    elif how == "a bundle of nothing":
        bundle.write_bytes(b"# v2 git bundle, or so it says")
    elif how == "a bundle of another repository":
        author = ("-c", "user.name=a", "-c", "user.email=b")
        for words in (("init", "-q"), (*author, "commit", "-q", "--allow-empty", "-m", "c")):
            subprocess.run(["git", "-C", str(out.parent), *words], check=True)
        subprocess.run(["git", "-C", str(out.parent), "bundle", "create", "-q", str(bundle), "--all"], check=True)
    elif how == "another search's bundle":
        champion = replace(kept.kernels[0], source=kept.kernels[0].source + "\n")
        write_record(record, replace(kept, kernels=(champion, *kept.kernels[1:])))
    elif how == "another case's record":
        write_record(record, replace(kept, case="softmax-16x16384-fp32"))
        return "is of softmax-16x16384-fp32"
    elif how == "measured on a GPU":
        write_record(record, replace(kept, kind=MEASURED))
        return "was measured on"
    else:
        record.write_bytes(record.read_bytes()[:-500] if how == "half a record" else b"[]")
        return "is no record of a case"
    return "is no bundle of the search"


@pytest.mark.parametrize(
    "how",
    [
        "no bundle", "a bundle of nothing", "a bundle of another repository", "another search's bundle",
        "another case's record", "measured on a GPU", "half a record", "another file",
    ],
)  # fmt: skip
def test_what_cannot_be_measured_anew_is_told_and_stays_as_it_is(
    folder: Path, tmp_path: Path, how: str, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(folder / "out", tmp_path / "out")
    shutil.copytree(folder / "work", tmp_path / "work")
    words = damaged(tmp_path / "out", how)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert call(tmp_path, "--again") == 1
    assert words in capfd.readouterr().err
    assert {p: p.read_bytes() for p in before} == before
    assert call(tmp_path, "--list") == 0


@pytest.mark.parametrize(
    "words", [("--pairs", "0"), ("--processes", "0"), ("--pack", "/nowhere/six.tgz"), ("--pack", "kept.json")]
)
def test_what_cannot_come_to_anything_is_refused_before_it_begins(tmp_path: Path, words: tuple[str, str]) -> None:
    assert call(tmp_path, *words) == 2
    assert not (tmp_path / "out").exists()


def test_an_interrupted_call_says_so_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bench_six, "run_case", interrupted)
    assert call(tmp_path) == 130
    assert "interrupted: what was finished before is kept" in capfd.readouterr().err


def test_a_call_without_time_begins_nothing_and_says_what_is_left(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert call(tmp_path, "--limit", "30") == 1
    assert f"1 left for another call: {OF.name}" in capfd.readouterr().err
    assert not (tmp_path / "work" / OF.name).exists()


def test_the_document_names_a_replay_as_one_and_draws_nothing_of_it(record: CaseRecord) -> None:
    text = section(load_cases(), {OF.name: record}, read_parts())
    assert "Replayed from a recorded pool, not measured" in text
    assert "0 of 20 cases are measured, 20 not." in text
    assert plots(load_cases(), {OF.name: record}) == {}


def test_the_list_says_how_far_a_case_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(folder, "--list") == 0
    assert "finished, replayed on replay of NVIDIA H200" in capsys.readouterr().out


def test_an_unknown_baseline_is_named(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert call(folder, "--baselines", "eager,tensorrt") == 2
    assert "no baseline is named 'tensorrt'" in capfd.readouterr().err


def test_a_search_that_is_over_is_left_alone_and_a_new_one_uses_the_embedded_generators_alone(folder: Path) -> None:
    workspace = folder / "work" / OF.name / "workspace"
    wanted = Wanted(folder / "problem", workspace, "cuda:0", 45.0, 7)
    state = state_of(workspace)
    assert state is not None
    assert state.ended is not None
    assert state.ended.reason in (EndReason.BUDGET, EndReason.EXHAUSTED)
    assert next_command(wanted, state) == []
    command = next_command(wanted, None)
    assert command[command.index("--generator") + 1] == "playbook,rewrites"
    assert command[command.index("--budget") + 1] == "45s"
    assert command[command.index("--seed") + 1] == "7"


def test_nothing_is_measured_while_another_engine_still_searches_there(folder: Path, tmp_path: Path) -> None:
    workspace = folder / "work" / OF.name / "workspace"
    wanted = Wanted(folder / "work" / OF.name / "problem", workspace, DEVICE, SECONDS, 0)
    with (
        EngineLock(open_workspace(workspace).lock).acquire("softmax-1"),
        pytest.raises(EngineError, match="still searches"),
    ):
        search(wanted, tmp_path / "search.log")


def test_a_contest_that_fails_is_told_with_the_end_of_its_log_and_left_undone(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "work" / OF.name).mkdir(parents=True)
    (tmp_path / "work" / OF.name / "workspace").symlink_to(folder / "work" / OF.name / "workspace")
    words = ["--out", tmp_path / "out", "--work", tmp_path / "work", "--cases", OF.name, "--no-a100",
             "--device", f"{DEVICE}.gone"]  # fmt: skip
    assert bench_six.main([str(word) for word in words]) == 1
    told = capfd.readouterr().err
    assert f"{OF.name}: the contest came to nothing" in told
    assert "pool" in told
    assert not list((tmp_path / "out").glob("*.json"))
