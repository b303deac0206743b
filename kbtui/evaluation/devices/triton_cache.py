"""Effects: copies a Triton cache to another directory so that it is found there.

Triton keeps absolute paths in its group files, so those are written anew. The files come from a process that ran a
candidate: links are left behind and names are taken without their directories.
"""

import json
import os
import shutil
from pathlib import Path

_GROUP = "__grp__"
#: Steps on the way to a binary, megabytes of text, which a launch reads for nothing; Triton does without them.
_TEXTS = (".ttir", ".ttgir", ".llir", ".ptx", ".source")


def copy_cache(source: Path, target: Path, *, texts: bool = True) -> None:
    """Copy every entry (one directory a kernel or launcher) of ``source``, which need not exist.

    Without ``texts`` a kernel's intermediate forms are left behind: what is launched is the binary.
    """
    if not source.is_dir():
        return
    for entry in os.scandir(source):
        if entry.is_dir(follow_symlinks=False):
            _copy_entry(Path(entry.path), target / entry.name, () if texts else _TEXTS)


def _copy_entry(source: Path, target: Path, left_behind: tuple[str, ...]) -> None:
    target.mkdir(exist_ok=True)
    for file in os.scandir(source):
        if not file.is_file(follow_symlinks=False) or file.name.endswith(left_behind):
            continue
        if file.name.startswith(_GROUP):
            (target / file.name).write_text(_moved(Path(file.path), target))
        else:
            shutil.copyfile(file.path, target / file.name)


def _moved(group: Path, target: Path) -> str:
    try:
        members = json.loads(group.read_text())["child_paths"]
        return json.dumps({"child_paths": {name: str(target / Path(path).name) for name, path in members.items()}})
    except (ValueError, KeyError, TypeError, AttributeError):
        # A group that cannot be read is a miss, as it is for Triton.
        return "{}"
