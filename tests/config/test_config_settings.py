from pathlib import Path

import pytest

from kbtui.config import Settings, effective_settings, load_settings
from kbtui.errors import ExitCode, UsageError
from kbtui.paths import config_file, resolve_workspace


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_config(text: str) -> Path:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text(text)
    return config_file()


def complaint(**flags) -> str:
    with pytest.raises(UsageError) as caught:
        load_settings(**flags)
    assert caught.value.exit_code == ExitCode.USAGE
    assert "\n" not in str(caught.value)
    return str(caught.value)


def origin(key: str, **flags) -> str:
    return next(row.origin for row in effective_settings(**flags) if row.key == key)


def test_a_flag_beats_a_variable_beats_the_file_beats_the_default(monkeypatch):
    assert (load_settings().budget, origin("budget")) == ("10m", "default")
    path = write_config('budget = "5m"\n')
    assert (load_settings().budget, origin("budget")) == ("5m", str(path))
    monkeypatch.setenv("KBTUI_BUDGET", "3m")
    assert (load_settings().budget, origin("budget")) == ("3m", "KBTUI_BUDGET")
    assert (load_settings(budget="1m").budget, origin("budget", budget="1m")) == ("1m", "flag")


def test_generators_are_a_list_in_the_file_and_words_elsewhere(monkeypatch):
    write_config('generators = ["rewrites"]\n')
    assert load_settings().generators == ("rewrites",)
    monkeypatch.setenv("KBTUI_GENERATORS", "playbook, llm,llm")
    assert load_settings().generators == ("playbook", "llm")
    assert load_settings(generators="rewrites,playbook").generators == ("rewrites", "playbook")


def test_every_setting_says_what_it_means():
    rows = effective_settings()
    assert [row.key for row in rows] == list(Settings.model_fields)
    assert all(row.meaning for row in rows)
    assert all(isinstance(row.value, str | int | float | None) for row in rows)


def test_an_unknown_key_in_the_file_is_named_with_the_nearest_and_the_file():
    path = write_config("bugdet = 3\n")
    assert complaint() == f"unknown key 'bugdet' in {path}; did you mean budget?"


def test_a_variable_that_nearly_spells_a_setting_is_named(monkeypatch):
    monkeypatch.setenv("KBTUI_DEVCE", "cuda:0")
    assert complaint() == "unknown variable KBTUI_DEVCE; did you mean KBTUI_DEVICE?"


def test_variables_of_other_readers_are_left_alone(monkeypatch):
    monkeypatch.setenv("KBTUI_SANDBOX", "on")
    monkeypatch.setenv("KBTUI_CI", "1")
    assert load_settings() == Settings()


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"device": "gpu"}, "--device is 'gpu'; use auto, cuda:N, model:a100"),
        ({"device": "model:b100"}, "--device is 'model:b100'"),
        ({"budget": "soon"}, "--budget is 'soon'; write it as 90s"),
        ({"generators": "playbok"}, "--generator is 'playbok'; did you mean playbook?"),
        ({"generators": ""}, "--generator is ''; use playbook, rewrites, llm"),
        ({"child_entry": "scren"}, "--child-entry is 'scren'; did you mean screen?"),
        ({"refresh_hz": 1000}, "--refresh is 1000; use 0.1 to 30"),
        ({"seed": "x"}, "--seed is 'x'"),
        ({"ollama_host": "not a host"}, "use an address as http://localhost:11434"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_what_can(flags, says):
    assert says in complaint(**flags)


def test_a_bad_value_names_the_file_or_variable_it_came_from(monkeypatch):
    path = write_config('device = "gpu"\n')
    assert f"device ({path}) is 'gpu'" in complaint()
    monkeypatch.setenv("KBTUI_DEVICE", "tpu")
    assert "device (KBTUI_DEVICE) is 'tpu'" in complaint()


def test_a_file_that_is_not_toml_is_named_with_the_line():
    path = write_config("seed = 1\n= 3\n")
    said = complaint()
    assert str(path) in said
    assert "line 2" in said


def test_cuda_alone_means_the_first_gpu():
    assert load_settings(device="cuda").device == "cuda:0"


def test_the_workspace_is_the_flag_then_the_variable_then_the_file_then_here(home, monkeypatch):
    assert resolve_workspace(None) == home / ".kbtui"
    write_config(f'workspace = "{home}/from-file"\n')
    assert resolve_workspace(None) == home / "from-file"
    monkeypatch.setenv("KBTUI_WORKSPACE", "from-variable")
    assert resolve_workspace(None) == home / "from-variable"
    assert resolve_workspace(Path("flag")) == home / "flag"


def test_a_workspace_that_is_a_file_is_refused(home):
    (home / "taken").write_text("")
    with pytest.raises(UsageError, match="is not a folder; name another with --workspace"):
        resolve_workspace(home / "taken")
