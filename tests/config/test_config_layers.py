"""Defaults, the user's file, the project's file, variables, flags: each beats the one before, and says so."""

from pathlib import Path

import pytest

from kbtui.config import effective_settings, load_settings
from kbtui.errors import UsageError
from kbtui.paths import config_file, project_file, resolve_workspace


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "project" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project" / "deep")
    return tmp_path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def stands(key: str, **flags):
    row = next(row for row in effective_settings(**flags) if row.key == key)
    return row.value, row.origin


def test_each_layer_beats_the_one_before_and_is_named(home, monkeypatch):
    assert stands("theme") == (None, "default")
    user = write(config_file(), 'theme = "nord"\nbudget = "1m"\n')
    assert stands("theme") == ("nord", str(user))
    project = write(home / "project" / "kbtui.toml", 'theme = "gruvbox"\n')
    assert stands("theme") == ("gruvbox", str(project))
    assert stands("budget") == ("1m", str(user))
    monkeypatch.setenv("KBTUI_THEME", "dracula")
    assert stands("theme") == ("dracula", "KBTUI_THEME")
    assert stands("theme", theme="kbtui-light") == ("kbtui-light", "flag")


def test_a_projects_file_is_looked_for_up_to_the_repositorys_root(home):
    above = write(home / "kbtui.toml", "seed = 1\n")
    assert project_file() == above
    (home / "project" / ".git").mkdir()
    assert project_file() is None
    write(home / "project" / "kbtui.toml", "seed = 2\n")
    assert load_settings().seed == 2


def test_a_projects_folders_are_relative_to_its_file(home):
    write(home / "project" / "kbtui.toml", 'workspace = "runs"\ncopy_folder = "~/copies"\n')
    assert resolve_workspace(None) == home / "project" / "runs"
    assert load_settings().copy_folder == home / "copies"


def test_a_bad_value_in_a_project_names_its_file(home):
    path = write(home / "project" / "kbtui.toml", 'device = "gpu"\n')
    with pytest.raises(UsageError) as caught:
        load_settings()
    assert f"device ({path}) is 'gpu'" in str(caught.value)


def test_keys_are_a_table_in_a_file_and_words_elsewhere(home, monkeypatch):
    write(home / "project" / "kbtui.toml", '[keys]\npause = "f2"\n')
    assert load_settings().keys == {"pause": "f2"}
    monkeypatch.setenv("KBTUI_KEYS", "stop=ctrl+x, pin = f3")
    assert load_settings().keys == {"stop": "ctrl+x", "pin": "f3"}
    assert stands("keys") == ("stop=ctrl+x,pin=f3", "KBTUI_KEYS")
    monkeypatch.setenv("KBTUI_KEYS", "stop")
    with pytest.raises(UsageError, match="write it as pause=f2"):
        load_settings()


def test_readonly_and_ascii_are_switches_of_every_layer(home, monkeypatch):
    write(config_file(), "readonly = true\n")
    assert load_settings().readonly
    monkeypatch.setenv("KBTUI_READONLY", "no")
    assert not load_settings().readonly
    assert load_settings(readonly=True).readonly
    assert load_settings(ascii_only=True).ascii_only


@pytest.mark.parametrize(
    ("written", "told"),
    [("5", "is 5; write it in quotes, as '5'"), ("true", "is True; write it in quotes, as 'true'"),
     ('["2m"]', r"is \['2m'\]; input should be a valid string")],
)  # fmt: skip
def test_a_number_where_words_belong_is_to_be_put_in_quotes(home, written, told):
    write(home / "project" / "kbtui.toml", f"budget = {written}\n")
    with pytest.raises(UsageError, match=f"budget .* {told}$"):
        load_settings()
