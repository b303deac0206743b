"""For all tests: no settings of a user leak in, GPU tests skip without one, missing programs are named, one search."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbtui.evaluation.process import Zygote

MISSING = "missing program: "
#: Folders of the longest tests, which go first: else one worker ends alone with the last of them.
LONGEST = ("viewer_session", "leaving", "evaluation_model", "generation", "tui", "engine", "evaluation_cuda", "samples")
SYSTEM_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))


def pytest_configure(config: pytest.Config) -> None:
    for name in [n for n in os.environ if n.startswith("KBTUI_") and n != "KBTUI_CI"]:
        del os.environ[name]
    os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp(prefix="kbtui-no-settings-")


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(os.environ["XDG_CONFIG_HOME"], ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {name: i for i, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.parent.name, len(LONGEST)))
    if not Path("/proc/driver/nvidia/version").exists():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("program"):
        for program in marker.args:
            if shutil.which(program, path=SYSTEM_PATH) is None:
                pytest.skip(f"{MISSING}{program}")


def _skipped_for_a_program(config: pytest.Config) -> list[str]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    reasons = [(report.nodeid, report.longrepr[2]) for report in skipped if isinstance(report.longrepr, tuple)]
    return [f"{node}: {reason.removeprefix('Skipped: ')}" for node, reason in reasons if MISSING in reason]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if os.environ.get("KBTUI_CI") and exitstatus == 0 and _skipped_for_a_program(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    skipped = _skipped_for_a_program(config)
    if skipped:
        terminalreporter.section("skipped for a missing program")
        for line in skipped:
            terminalreporter.write_line(line)
        if os.environ.get("KBTUI_CI"):
            terminalreporter.write_line("KBTUI_CI is set: install these programs; the run counts as failed", red=True)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with run softmax-1: three candidates on the model of an A100. Only to be read, or copied.

    One search for all of pytest's workers: the first to ask runs it. Its path holds a space and more.
    """
    from tests.fakes.commands import kbtui

    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "a finished séarch"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            started = folder.with_suffix(f".{os.getpid()}")
            words = ("run", "softmax", "--json", "--device", "model:a100", "--candidates", "3")
            done = kbtui(*words, "-w", started / "runs", timeout_s=600.0)
            assert done.returncode == 0, done.stderr
            started.rename(folder)
    return folder / "runs"


@pytest.fixture(scope="session")
def interpreting_zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """With torch and Triton's interpreter; one for all tests of a worker, for its start takes seconds."""
    with Zygote(tmp_path_factory.mktemp("interpreting") / "zygote.log", interpret=True) as zygote:
        yield zygote


@pytest.fixture(scope="session")
def compiling_zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """With torch and Triton's compiler; one for all tests of a worker."""
    with Zygote(tmp_path_factory.mktemp("compiling") / "zygote.log", interpret=False) as zygote:
        yield zygote
