"""config, completion and --once, as a user types them."""

import json
from pathlib import Path

import pytest

from tests.fakes.commands import ROOT, kbtui, kbtui_forked, one_line


def test_config_show_says_where_each_value_came_from(tmp_path: Path) -> None:
    (tmp_path / "kbtui.toml").write_text('budget = "3m"\n')
    done = kbtui("config", "show", cwd=tmp_path, env={"KBTUI_SEED": "4"})
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines() if line}
    assert rows["budget"][1:] == ["3m", str(tmp_path / "kbtui.toml")]
    assert rows["seed"][1:] == ["4", "KBTUI_SEED"]
    assert rows["device"][1:] == ["auto", "default"]
    assert kbtui("config", cwd=tmp_path, env={"KBTUI_SEED": "4"}).stdout == done.stdout
    told = json.loads(kbtui("config", "show", "--json", cwd=tmp_path).stdout)
    assert {row["key"]: row["origin"] for row in told}["budget"] == str(tmp_path / "kbtui.toml")


def test_config_keys_lists_the_names_that_can_be_remapped(tmp_path: Path) -> None:
    rows = json.loads(kbtui("config", "keys", "--json", cwd=tmp_path, env={"KBTUI_KEYS": "pause=f2"}).stdout)
    keys = {row["id"]: row["key"] for row in rows}
    assert keys["pause"] == "f2"
    assert keys["leave"] == "q"


@pytest.mark.parametrize("command", ["ls", "status", "best"])
def test_a_workspace_named_before_the_command_is_the_command_s(tmp_path: Path, command: str) -> None:
    before = kbtui_forked("-w", str(tmp_path / "one"), command, cwd=tmp_path)
    assert f"no workspace at {tmp_path / 'one'};" in one_line(before)
    both = kbtui_forked("-w", str(tmp_path / "one"), command, "-w", str(tmp_path / "two"), cwd=tmp_path)
    assert f"no workspace at {tmp_path / 'two'};" in one_line(both)


@pytest.mark.parametrize(
    ("keys", "says"),
    [("pauze=f2", "did you mean pause?"), ("pause=q", "q would be"), ("pause=f2,pin=f2", "f2 would be pause and pin")],
)
def test_keys_that_cannot_be_are_named(tmp_path: Path, keys: str, says: str) -> None:
    done = kbtui_forked("config", "keys", cwd=tmp_path, env={"KBTUI_KEYS": keys})
    assert says in one_line(done)
    assert done.returncode == 2


def complete(shell: str, words: str, workspace: Path, cwd: Path = ROOT) -> list[str]:
    """What the shell's script would be answered with the cursor after ``words``."""
    n_words = len(words.split(" ")) - 1
    asked = {
        "_KBTUI_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": words,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    asked |= {"COMP_WORDS": words, "COMP_CWORD": str(n_words), "KBTUI_WORKSPACE": str(workspace)}
    done = kbtui_forked(cwd=cwd, env=asked)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_offered_runs_candidates_and_problems(finished: Path, shell: str) -> None:
    assert "softmax-1" in " ".join(complete(shell, "kbtui attach ", finished))
    candidates = " ".join(complete(shell, "kbtui show ", finished))
    assert "champion" in candidates
    assert "c0001" in candidates
    problems = " ".join(complete(shell, "kbtui run so", finished))
    assert "softmax" in problems
    assert "rms_norm" not in problems


def test_where_there_are_no_runs_a_shell_is_offered_none_and_told_nothing(tmp_path: Path) -> None:
    assert complete("bash", "kbtui attach ", tmp_path / "nowhere") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_what_the_shell_sources(shell: str) -> None:
    done = kbtui_forked("completion", shell)
    assert "_KBTUI_COMPLETE" in done.stdout
    assert done.returncode == 0


def test_a_shell_without_completion_is_named() -> None:
    done = kbtui_forked("completion", "csh")
    assert "bash, zsh, fish" in one_line(done)
    assert done.returncode == 2


@pytest.mark.parametrize(("columns", "lines"), [(120, 40), (80, 24)])
def test_once_prints_the_screen_as_plain_text_as_wide_as_columns_says(finished: Path, columns: int, lines: int) -> None:
    size = {"COLUMNS": str(columns), "LINES": str(lines)}
    done = kbtui("attach", "--once", "-w", finished, env=size)
    rows = done.stdout.splitlines()
    assert done.returncode == 0
    assert "softmax-1" in rows[0]
    assert "c0001" in done.stdout
    assert "\x1b" not in done.stdout
    assert max(len(row) for row in rows) <= columns
    assert 10 < len(rows) <= lines


def test_once_in_ascii_is_ascii(finished: Path) -> None:
    done = kbtui("attach", "--once", "--ascii", "-w", finished, env={"COLUMNS": "120", "LINES": "40"})
    assert done.stdout.isascii()
