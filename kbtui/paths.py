"""Where things are: the workspace of runs, the user's configuration. Effects: reads the environment, makes a folder."""

from pathlib import Path

import platformdirs

from kbtui.errors import UsageError

DEFAULT_WORKSPACE = Path(".kbtui")


def config_file() -> Path:
    """The user's configuration file, whether it exists or not, e.g. ``~/.config/kbtui/config.toml``."""
    return platformdirs.user_config_path("kbtui") / "config.toml"


def resolve_workspace(flag: Path | None) -> Path:
    """The workspace as an absolute path: the flag, else KBTUI_WORKSPACE, else the configuration file, else ./.kbtui.

    The folder need not exist. Raises UsageError where something other than a folder is there.
    """
    from kbtui.config import load_settings

    chosen = flag or load_settings().workspace or DEFAULT_WORKSPACE
    workspace = chosen.expanduser().absolute()
    if workspace.exists() and not workspace.is_dir():
        raise UsageError(f"the workspace {workspace} is not a folder", "name another with --workspace")
    return workspace
