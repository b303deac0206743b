"""Make the pictures of the documents: the viewer on a search that ran on a real GPU, out of its kept ledger.

usage: python docs/picture.py [--only NAME]
Effects: a workspace in a temporary folder, made from the bundle alone: clone, reindex, look; writes docs/*.svg.
"""

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kbtui.tui.run import render_svg
from store.reader import Reader
from store.reindex import reindex
from store.workspace import create_workspace

ROOT = Path(__file__).parents[1]
BUNDLE = ROOT / "benchmarks/results/h200-2026-11-30/softmax.bundle"


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: its file under docs/, the terminal's size, and the keys pressed before it is taken."""

    path: str
    size: tuple[int, int]
    keys: tuple[str, ...]
    theme: str = "kbtui-dark"


_PROFILED = ("slash", *"c0003", "enter")
PICTURES = (
    Picture("viewer.svg", (150, 44), ()),
    Picture("pictures/board.svg", (200, 60), ()),
    Picture("pictures/bottleneck.svg", (120, 40), (*_PROFILED, "3", "f")),
    Picture("pictures/diff.svg", (150, 40), ("4", "f", "d")),
    Picture("pictures/history.svg", (120, 32), ("5", "o")),
    Picture("pictures/lineage.svg", (120, 32), ("6",)),
    Picture("pictures/compare.svg", (120, 40), ("5", "o", "m", "down", "c")),
    Picture("pictures/candidate.svg", (120, 40), (*_PROFILED, "enter", "4")),
    Picture("pictures/small.svg", (80, 24), ()),
    Picture("pictures/light.svg", (120, 40), (), "kbtui-light"),
)


def draw(reader: Reader, picture: Picture) -> None:
    """Write one picture of the reader's only run."""
    out = ROOT / "docs" / picture.path
    out.parent.mkdir(exist_ok=True)
    out.write_text(render_svg(reader, reader.runs()[0].run, picture.size, picture.keys, picture.theme))
    print(out.relative_to(ROOT))


def main(arguments: list[str]) -> None:
    only = arguments[1] if arguments[:1] == ["--only"] and len(arguments) > 1 else ""
    with tempfile.TemporaryDirectory() as folder:
        workspace = create_workspace(Path(folder))
        subprocess.run(["git", f"--git-dir={workspace.git_dir}", "fetch", "-q", BUNDLE, "+refs/*:refs/*"], check=True)
        reindex(workspace)
        with Reader(workspace) as reader:
            for picture in PICTURES:
                if only in picture.path:
                    draw(reader, picture)


if __name__ == "__main__":
    main(sys.argv[1:])
