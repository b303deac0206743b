"""Make the six benchmarks' part of docs/results.md, its plots and README.md's table, from benchmarks/results.

usage: python docs/results.py [FOLDER] [--into DIR]
FOLDER: the cases' records, default benchmarks/results/six
DIR: where results.md and the plots are written, default docs; README.md is written only without it

What stands in a page outside the marks stays as it is. Effects: reads FOLDER, writes DIR.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.marked_page import between, replaced
from benchmarks.six.cases import load_cases
from benchmarks.six.headline import headline
from benchmarks.six.markdown import wrapped
from benchmarks.six.parts import read_parts
from benchmarks.six.plots import plots
from benchmarks.six.record import MEASURED, read_records
from benchmarks.six.table import section

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "benchmarks/results/six"
DOCUMENT, README = ROOT / "docs/results.md", ROOT / "README.md"
BEGIN, END = "<!-- begin: made by docs/results.py -->", "<!-- end: made by docs/results.py -->"
PLOTS = ("six-speedups.svg", "six-searches.svg", "six-budgets.svg")


def documents(folder: Path, text: str) -> dict[str, str]:
    """``results.md`` with its made part anew, and the plots, by name. Raises ValueError where a mark is missing."""
    cases, records = load_cases(), read_records(folder)
    drawn = plots(cases, records)
    return {"results.md": with_section(text, section(cases, records, read_parts(), drawn)), **drawn}


def front_page(folder: Path, text: str) -> str:
    """README.md with its table anew. Raises ValueError where a mark is missing."""
    measured = {name: record for name, record in read_records(folder).items() if record.kind == MEASURED}
    return between(text, "six benchmarks", wrapped(headline(load_cases(), measured)))


def with_section(text: str, made: str) -> str:
    """The text with all between the marks replaced. Raises ValueError where a mark is missing."""
    return replaced(text, BEGIN, END, made)


def write(files: Mapping[str, str], into: Path, old: Iterable[str] = PLOTS) -> None:
    """``old``: names of files that go where nothing is left to write of them."""
    into.mkdir(parents=True, exist_ok=True)
    for name in old:
        if name not in files:
            (into / name).unlink(missing_ok=True)
    for name, text in files.items():
        (into / name).write_text(text, encoding="utf-8")
        print(into / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, nargs="?", default=KEPT)
    parser.add_argument("--into", type=Path)
    options = parser.parse_args()
    write(documents(options.folder, DOCUMENT.read_text(encoding="utf-8")), options.into or ROOT / "docs")
    if options.into is None:
        write({README.name: front_page(options.folder, README.read_text(encoding="utf-8"))}, README.parent, ())


if __name__ == "__main__":
    main()
