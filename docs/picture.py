"""Make docs/viewer.svg: the viewer on a search that ran on a real GPU, out of its kept ledger.

usage: python docs/picture.py [BUNDLE] [OUT.svg] [KEY ...]    keys are pressed before the picture is taken
Effects: a workspace in a temporary folder, made from the bundle alone: clone, reindex, look.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from kbtui.tui.run import render_svg
from store.reader import Reader
from store.reindex import reindex
from store.workspace import create_workspace

ROOT = Path(__file__).parents[1]
BUNDLE = ROOT / "benchmarks/results/h200-2026-11-30/softmax.bundle"
SIZE = (150, 44)


def picture(bundle: Path, keys: tuple[str, ...]) -> str:
    """The dashboard as SVG."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = create_workspace(Path(folder))
        subprocess.run(["git", f"--git-dir={workspace.git_dir}", "fetch", "-q", bundle, "+refs/*:refs/*"], check=True)
        reindex(workspace)
        with Reader(workspace) as reader:
            return render_svg(reader, reader.runs()[0].run, SIZE, keys)


def main(arguments: list[str]) -> None:
    bundle = Path(arguments[0]) if arguments else BUNDLE
    out = Path(arguments[1]) if len(arguments) > 1 else ROOT / "docs/viewer.svg"
    out.write_text(picture(bundle, tuple(arguments[2:])))
    print(out)


if __name__ == "__main__":
    main(sys.argv[1:])
