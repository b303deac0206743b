"""Settings: defaults, the user's file, the project's file, KBTUI_* variables, flags; later ones win. Effects: reads."""

import difflib
import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from kbtui.budget import parse_duration_s
from kbtui.errors import UsageError
from kbtui.paths import PROJECT_FILE, config_file, project_file

PREFIX = "KBTUI_"
GENERATORS = ("playbook", "rewrites", "llm")
CHILD_ENTRIES = ("parent", "screen")
#: Flags whose name is not their setting's.
_FLAGS = {"generators": "generator", "refresh_hz": "refresh", "ascii_only": "ascii"}
_DEVICE = re.compile(r"auto|cuda(:\d+)?|model:(a100|h100|h200)|replay:.+")


class Settings(BaseModel):
    """What a user can set for good; each has a flag or a KBTUI_* variable of the same name."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    workspace: Path | None = None
    """Folder of runs; ./.kbtui where nothing is set."""

    device: str = "auto"
    """auto, cuda:N, model:a100, model:h100, model:h200 where there is no GPU, or replay:POOL for a recorded search."""

    budget: str = "10m"
    """Wall time a run may spend, as 90s, 10m or 1h30m."""

    generators: tuple[str, ...] = ("playbook", "rewrites")
    """What proposes candidates, in order: playbook, rewrites, llm."""

    model: str | None = None
    """Model for the llm generator, e.g. qwen2.5-coder:7b; naming one turns the generator on."""

    ollama_host: str | None = None
    """Ollama's address, e.g. http://gpu-box:11434; its own default where nothing is set."""

    llm_url: str | None = None
    """A server of OpenAI's form to ask instead of Ollama, e.g. http://127.0.0.1:8080/v1 (llama.cpp, vLLM)."""

    refresh_hz: float = 4.0
    """Most redraws of the viewer a second; lower it on a slow line."""

    seed: int = 0
    """Seed of a run's inputs and choices."""

    child_entry: str = "parent"
    """Where a promoted candidate's mutations enter the ladder: parent (its next rung) or screen."""

    theme: str | None = None
    """The viewer's colours: kbtui-dark, kbtui-light, or a Textual theme's name; by the terminal where none is set."""

    ascii_only: bool = False
    """Draw with ASCII characters only."""

    readonly: bool = False
    """The viewer only looks: no key asks anything of a search."""

    keys: dict[str, str] = {}
    """The viewer's keys by their names: a table in a file, or pause=f2,stop=ctrl+x; `kbtui config keys` lists them."""

    copy_folder: Path | None = None
    """Where y writes a candidate's source beside the clipboard; the workspace's `copied` where nothing is set."""

    @field_validator("device")
    @classmethod
    def _device(cls, device: str) -> str:
        if not _DEVICE.fullmatch(device):
            raise ValueError("use auto, cuda:N, model:a100, model:h100, model:h200 or replay:POOL")
        return "cuda:0" if device == "cuda" else device

    @field_validator("budget")
    @classmethod
    def _budget(cls, budget: str) -> str:
        try:
            parse_duration_s(budget)
        except UsageError as error:
            raise ValueError(error.do) from None
        return budget

    @field_validator("generators", mode="before")
    @classmethod
    def _generators(cls, generators: Any) -> tuple[str, ...]:
        named = generators.split(",") if isinstance(generators, str) else generators
        names = tuple(dict.fromkeys(str(name).strip() for name in named if str(name).strip()))
        unknown = [name for name in names if name not in GENERATORS]
        if unknown or not names:
            raise ValueError(_nearest(unknown[0] if unknown else "", GENERATORS))
        return names

    @field_validator("copy_folder")
    @classmethod
    def _copy_folder(cls, folder: Path | None) -> Path | None:
        return folder.expanduser() if folder else None

    @field_validator("keys", mode="before")
    @classmethod
    def _keys(cls, keys: Any) -> dict[str, str]:
        if not isinstance(keys, str):
            return keys  # type: ignore[no-any-return]
        pairs = [pair.partition("=") for pair in keys.split(",") if pair.strip()]
        if not all(name.strip() and key.strip() for name, _, key in pairs):
            raise ValueError("write it as pause=f2,stop=ctrl+x")
        return {name.strip(): key.strip() for name, _, key in pairs}

    @field_validator("child_entry")
    @classmethod
    def _child_entry(cls, entry: str) -> str:
        if entry not in CHILD_ENTRIES:
            raise ValueError(_nearest(entry, CHILD_ENTRIES))
        return entry

    @field_validator("refresh_hz")
    @classmethod
    def _refresh_hz(cls, refresh_hz: float) -> float:
        if not 0.1 <= refresh_hz <= 30:
            raise ValueError("use 0.1 to 30")
        return refresh_hz

    @field_validator("ollama_host")
    @classmethod
    def _ollama_host(cls, host: str | None) -> str | None:
        if host is not None and not re.fullmatch(r"(https?://)?[^\s/:]+(:\d+)?/?", host):
            raise ValueError("use an address as http://localhost:11434")
        return host

    @field_validator("llm_url")
    @classmethod
    def _llm_url(cls, url: str | None) -> str | None:
        if url is not None and not re.fullmatch(r"https?://[^\s/:]+(:\d+)?(/\S*)?", url):
            raise ValueError("use a URL as http://127.0.0.1:8080/v1")
        return url


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """One setting as it stands. ``origin`` is ``flag``, a variable's name, a file's path, or ``default``."""

    key: str
    value: str | int | float | None
    origin: str
    meaning: str


def load_settings(**flags: Any) -> Settings:
    """Settings with these flags on top.

    Raises UsageError in one line, saying where the value came from: an unknown key (its nearest match is named),
    a value that cannot be, or a file that is not TOML.
    """
    _check_variables()
    layers = (*(_placed(path) for path in reversed(_files())), _from_variables(), flags)
    try:
        return Settings(**{key: value for layer in layers for key, value in layer.items()})
    except ValidationError as error:
        raise _usage_error(error, flags) from None


def effective_settings(**flags: Any) -> tuple[EffectiveSetting, ...]:
    """Every setting, its value and where the value came from. Raises as ``load_settings``."""
    settings = load_settings(**flags)
    return tuple(
        EffectiveSetting(key, _shown(getattr(settings, key)), _origin(key, flags), field.description or "")
        for key, field in Settings.model_fields.items()
    )


def _shown(value: Any) -> str | int | float | None:
    match value:
        case Path():
            return str(value)
        case tuple():
            return ",".join(value)
        case dict():
            return ",".join(f"{name}={key}" for name, key in value.items()) or None
        case _:
            return value  # type: ignore[no-any-return]


def _origin(key: str, flags: dict[str, Any]) -> str:
    if key in flags:
        return "flag"
    variable = _variables().get(f"{PREFIX}{key.upper()}")
    if variable:
        return f"{PREFIX}{key.upper()}"
    return next((str(path) for path in _files() if key in _from_file(path)), "default")


def _files() -> tuple[Path, ...]:
    """Configuration files, the one that wins first."""
    project = project_file()
    return (project, config_file()) if project is not None else (config_file(),)


def _variables() -> dict[str, str]:
    """KBTUI_* variables, their names in capitals whatever their case."""
    return {name.upper(): value for name, value in os.environ.items() if name.upper().startswith(PREFIX)}


def _from_variables() -> dict[str, str]:
    """Settings by variables; one that is empty says nothing."""
    given = _variables()
    return {key: value for key in Settings.model_fields if (value := given.get(f"{PREFIX}{key.upper()}"))}


def _check_variables() -> None:
    """Other KBTUI_* variables have other readers; one that nearly spells a setting is a typing error."""
    known = [f"{PREFIX}{key.upper()}" for key in Settings.model_fields]
    for name in _variables():
        if name not in known and (near := difflib.get_close_matches(name, known, n=1, cutoff=0.88)):
            raise UsageError(f"unknown variable {name}", f"did you mean {near[0]}?")


def _from_file(path: Path) -> dict[str, Any]:
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}", "mend or remove it") from None
    for key in settings:
        if key not in Settings.model_fields:
            raise UsageError(f"unknown key {key!r} in {path}", _nearest(key, tuple(Settings.model_fields)))
    return settings


def _placed(path: Path) -> dict[str, Any]:
    """A file's settings; in a project's file a folder is relative to the file, wherever in the project one is."""
    found = _from_file(path)
    if path.name == PROJECT_FILE:
        for key in ("workspace", "copy_folder"):
            if isinstance(found.get(key), str):
                found[key] = str(path.parent / Path(found[key]).expanduser())
    return found


def _nearest(name: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else f"use {', '.join(known)}"


def _usage_error(error: ValidationError, flags: dict[str, Any]) -> UsageError:
    first = error.errors()[0]
    key = str(first["loc"][0]) if first["loc"] else "?"
    message = re.sub(r"^Value error, ", "", first["msg"])
    if first["type"] == "string_type" and not isinstance(first["input"], list | dict):
        message = f"write it in quotes, as {str(first['input']).lower()!r}"
    if first["type"] == "extra_forbidden":
        return UsageError(f"unknown setting {key!r}", _nearest(key, tuple(Settings.model_fields)))
    origin = _origin(key, flags)
    where = f"--{_FLAGS.get(key, key.replace('_', '-'))}" if origin == "flag" else f"{key} ({origin})"
    return UsageError(f"{where} is {first['input']!r}", message[:1].lower() + message[1:])
