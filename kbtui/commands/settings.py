"""config: settings and keys, and where they came from. Effects: reads the configuration."""

import json

from kbtui.domain.codec import to_plain
from kbtui.errors import ExitCode
from kbtui.paths import PROJECT_FILE, config_file, project_file


def show_settings(as_json: bool) -> ExitCode:
    """Each setting with its value and origin; on stderr's side of things, where the files are looked for."""
    from kbtui.config import effective_settings

    rows = effective_settings()
    if as_json:
        print(json.dumps([to_plain(row) for row in rows], indent=2))
        return ExitCode.DONE
    width = max(len(row.key) for row in rows)
    shown = [("–" if row.value is None else str(row.value)) for row in rows]
    values = max(len(text) for text in shown if len(text) <= 40)
    for row, text in zip(rows, shown, strict=True):
        print(f"{row.key:{width}}  {text:{values}}  {row.origin}")
    project = project_file()
    print(f"\nyours:    {_there(config_file())}")
    print(f"project:  {project or f'no {PROJECT_FILE} here or above'}")
    return ExitCode.DONE


def _there(path: object) -> str:
    return str(path) if config_file().exists() else f"{path} (not there)"


def show_keys(as_json: bool) -> ExitCode:
    """The key table with a user's own keys in it. Raises UsageError as the viewer would."""
    from kbtui.config import load_settings
    from kbtui.tui.keymap import keymap_of
    from kbtui.tui.keys import KEYS

    own = dict(keymap_of(load_settings().keys))
    rows = [{"id": key.id, "key": own.get(key.id, key.key), "does": key.help} for key in KEYS]
    if as_json:
        print(json.dumps(rows, indent=2))
        return ExitCode.DONE
    for row in rows:
        mine = "  (yours)" if row["id"] in own else ""
        print(f"{row['id']:16} {row['key']:26} {row['does']}{mine}")
    return ExitCode.DONE
