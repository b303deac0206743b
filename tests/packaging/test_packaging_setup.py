"""The set-up script against a stand-in for Python that writes down what pip was asked for."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Answers `-c`, `-m venv DIR`, `-m pip --version` and `-m pip install ...`; pip fails while a file says so.
STAND_IN = """#!/usr/bin/env bash
case "$1 $2" in
  "-c "*) exit ${OLD_PYTHON:-0} ;;
  "-m venv") mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
  "-m pip")
    [ "$3" = install ] || exit 0
    shift 3; echo "$*" >>pip.log
    if [[ "$*" = *--index-url* ]]; then rm -f no-cpu-build; exit 0; fi
    if [ -e no-cpu-build ]; then echo "no such build" >&2; exit 1; fi
    [ -e cut-short ] && exit 130
    touch .venv/bin/kbtui; chmod +x .venv/bin/kbtui ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in (".ci/setup.sh", "pyproject.toml", ".ci/constraints", "kbtui/__init__.py"):
        source, copy = ROOT / name, tmp_path / name
        copy.parent.mkdir(exist_ok=True)
        shutil.copytree(source, copy) if source.is_dir() else shutil.copy(source, copy)
    (tmp_path / "python").write_text(STAND_IN)
    (tmp_path / "python").chmod(0o755)
    return tmp_path


def setup(checkout: Path, mode: str = "run", **env: str) -> subprocess.CompletedProcess[str]:
    command = [str(checkout / ".ci" / "setup.sh"), mode]
    env = {**os.environ, "PYTHON": str(checkout / "python"), **env}
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)


def asked(checkout: Path) -> list[str]:
    log = checkout / "pip.log"
    return log.read_text().splitlines() if log.exists() else []


def test_a_second_time_does_nothing(checkout):
    assert setup(checkout).returncode == 0
    assert len(asked(checkout)) == 1
    again = setup(checkout)
    assert (again.returncode, again.stderr, len(asked(checkout))) == (0, "", 1)


@pytest.mark.skipif(Path("/proc/driver/nvidia/version").exists(), reason="this machine has a GPU")
def test_without_a_gpu_only_the_cpu_build_of_torch_can_be_chosen(checkout):
    (checkout / "no-cpu-build").touch()
    assert setup(checkout).returncode == 0
    refused, torch_alone, rest = asked(checkout)
    assert "--no-deps --retries 1 --index-url https://download.pytorch.org/whl/cpu" in torch_alone
    assert refused == rest
    assert all("-c .ci/constraints/cpu.txt" in line for line in asked(checkout))
    assert "torch==2.13.0+cpu" in (checkout / ".ci" / "constraints" / "cpu.txt").read_text()


def test_dev_tools_are_added_on_top_and_hold_the_run_set_up_too(checkout):
    setup(checkout)
    setup(checkout, "dev")
    assert ".[dev]" in asked(checkout)[1]
    assert "-c .ci/constraints/dev.txt" in asked(checkout)[1]
    setup(checkout)
    setup(checkout, "dev")
    assert len(asked(checkout)) == 2


def test_a_changed_requirement_sets_up_again(checkout):
    setup(checkout)
    with (checkout / "pyproject.toml").open("a") as file:
        file.write("# another line\n")
    setup(checkout)
    assert len(asked(checkout)) == 2


def test_an_install_that_was_cut_short_begins_again_from_nothing(checkout):
    (checkout / "cut-short").touch()
    failed = setup(checkout)
    assert failed.returncode != 0
    assert "run make again" in failed.stderr
    (checkout / "cut-short").unlink()
    (checkout / ".venv" / "half-installed").touch()
    assert setup(checkout).returncode == 0
    assert not (checkout / ".venv" / "half-installed").exists()
    assert setup(checkout).stderr == ""


def test_a_half_made_environment_is_made_anew(checkout):
    (checkout / ".venv" / "bin").mkdir(parents=True)
    (checkout / ".venv" / "bin" / "python").write_text("#!/bin/sh\nexit 1\n")
    assert setup(checkout).returncode == 0
    assert (checkout / ".venv" / "bin" / "kbtui").exists()


def test_an_environment_that_was_moved_with_its_checkout_is_set_up_again(checkout, tmp_path_factory):
    setup(checkout)
    moved = tmp_path_factory.mktemp("moved") / "checkout"
    shutil.copytree(checkout, moved)
    setup(moved)
    assert len(asked(moved)) == 2


def test_an_old_python_is_one_line_that_says_what_to_do(checkout):
    said = setup(checkout, OLD_PYTHON="1")
    assert said.returncode == 3
    assert len(said.stderr.splitlines()) == 1
    assert said.stderr.startswith("setup: Python 3.11 or later is needed, found")
    assert not (checkout / ".venv").exists()


def test_make_alone_lists_every_task_in_one_line_each():
    listed = subprocess.run(["make", "-C", str(ROOT)], capture_output=True, text=True, timeout=60).stdout
    tasks = [line.split()[1] for line in listed.splitlines() if line.startswith("  make ")]
    assert {"setup", "demo", "test", "test-full", "check", "clean"} <= set(tasks)
    assert all(len(line) <= 110 for line in listed.splitlines())
