"""Where things are: the workspace of runs, the user's configuration. Effects: reads the environment, makes a folder."""

from pathlib import Path

import platformdirs

from kbtui.errors import UsageError

DEFAULT_WORKSPACE = Path(".kbtui")
PROJECT_FILE = "kbtui.toml"


def config_file() -> Path:
    """The user's configuration file, whether it exists or not, e.g. ``~/.config/kbtui/config.toml``."""
    return platformdirs.user_config_path("kbtui") / "config.toml"


def project_file() -> Path | None:
    """``kbtui.toml`` of the project one is in: in this folder or above, up to the repository's root or one's home."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / PROJECT_FILE).is_file():
            return folder / PROJECT_FILE
        if (folder / ".git").exists() or folder == Path.home():
            return None
    return None


def resolve_workspace(flag: Path | None) -> Path:
    """The workspace as an absolute path: the flag, else KBTUI_WORKSPACE, else a configuration file, else ./.kbtui.

    The folder need not exist. Raises UsageError where something other than a folder is there.
    """
    from kbtui.config import load_settings

    chosen = flag or load_settings().workspace or DEFAULT_WORKSPACE
    workspace = chosen.expanduser().absolute()
    if workspace.exists() and not workspace.is_dir():
        raise UsageError(f"the workspace {workspace} is not a folder", "name another with --workspace")
    return workspace
