"""What a run was run with is recorded, told, and kept through a rebuild of the index."""

import json
import platform
from importlib import metadata
from pathlib import Path

import pytest

from kbtui.commands.leave import export, report
from kbtui.commands.show import show
from kbtui.domain.codec import envelope_from_plain, envelope_to_plain
from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.event import Budget, Envelope, Event, RunResumed
from kbtui.evaluation.devices.environment import environment_of, ncu_version, sandbox_facts
from kbtui.evaluation.process.sandbox import Protection
from kbtui.leaving.software import Change, in_brief, software
from store.reader import Reader
from store.reindex import reindex
from store.workspace import Workspace
from tests.fakes.search import started

FACTS = (("torch", "2.11.0"), ("driver", "580.82"))


def told(*events: Event) -> list[Envelope]:
    return [Envelope(seq, f"day {seq}", 0.0, 0.0, event) for seq, event in enumerate(events)]


def begun(facts: tuple[tuple[str, str], ...]) -> Event:
    plain = envelope_to_plain(told(started(Budget()))[0])
    plain["event"]["environment"] = [list(pair) for pair in facts]
    return envelope_from_plain(plain).event


def test_a_model_run_says_what_it_ran_with_and_how_it_was_confined():
    facts = dict(environment_of(DATA_SHEETS["a100"]))
    assert facts["torch"] == metadata.version("torch")
    assert facts["triton"] == metadata.version("triton")
    assert facts["python"] == platform.python_version()
    assert {"sandbox limits", "sandbox landlock", "sandbox seccomp"} <= facts.keys()
    assert "driver" not in facts


def test_what_is_not_enforced_says_so():
    assert sandbox_facts((Protection("landlock", False, "Linux 5.13 or later has Landlock"),)) == (
        ("sandbox landlock", "not enforced: Linux 5.13 or later has Landlock"),
    )


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("NVIDIA (R) Nsight Compute Command Line Profiler\nVersion 2025.3.1.0 (build 36398880)\n", "2025.3.1.0"),
        ("ncu: cannot open display\n", "ncu: cannot open display"),
        ("", "unknown"),
    ],
)
def test_the_profilers_version_is_read_from_what_it_says(said, version):
    assert ncu_version(said) == version


def test_an_event_without_an_environment_is_read_as_before():
    plain = envelope_to_plain(told(RunResumed(Budget(), ""))[0])
    del plain["event"]["environment"]
    assert envelope_from_plain(plain).event == RunResumed(Budget(), "")


def test_a_change_between_two_engines_is_told_once_with_what_is_otherwise():
    resumed = RunResumed(Budget(), "", (("torch", "2.12.0"),))
    first, changes = software(told(begun(FACTS), RunResumed(Budget(), "", FACTS), resumed, resumed))
    assert first == dict(FACTS)
    assert changes == (Change(2, "day 2", {"torch": "2.12.0", "driver": ""}),)


def test_a_run_of_before_it_was_kept_says_nothing():
    assert software(told(begun(()), RunResumed(Budget(), ""))) == ({}, ())
    assert in_brief({}) == ""


def test_it_is_in_the_ledger_and_shown_and_left_and_survives_a_rebuild(
    model_run: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    version = metadata.version("torch")
    reindex(model_run)
    with Reader(model_run) as reader:
        begin = reader.state("softmax-1").started
    assert begin is not None
    assert dict(begin.environment)["torch"] == version
    show(model_run.root, None, "best", False)
    show(model_run.root, None, "best", True)
    text = capsys.readouterr().out
    assert f"run with torch {version}, triton" in text
    assert json.loads(text[text.index('{\n  "candidate"') :])["environment"]["torch"] == version
    export(model_run.root, None, tmp_path / "out", None)
    assert json.loads((tmp_path / "out/environment.json").read_text())["software"]["torch"] == version
    assert f"# Software:    torch {version}" in (tmp_path / "out/kernel.py").read_text()
    report(model_run.root, None, tmp_path / "r.html", None)
    page = (tmp_path / "r.html").read_text()
    assert "Run with" in page
    assert "sandbox landlock" in page
