"""Make the six benchmarks' part of docs/results.md and its plots, from what is kept under benchmarks/results.

usage: python docs/results.py [FOLDER] [--into DIR]
FOLDER: the cases' records, default benchmarks/results/six
DIR: where results.md and the plots are written, default docs

What stands in results.md outside the two marks stays as it is. Effects: reads FOLDER, writes DIR.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.six.cases import load_cases
from benchmarks.six.parts import read_parts
from benchmarks.six.plots import plots
from benchmarks.six.record import read_records
from benchmarks.six.table import section

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "benchmarks/results/six"
DOCUMENT = ROOT / "docs/results.md"
BEGIN, END = "<!-- begin: made by docs/results.py -->", "<!-- end: made by docs/results.py -->"
PLOTS = ("six-speedups.svg", "six-searches.svg", "six-budgets.svg")


def documents(folder: Path, text: str) -> dict[str, str]:
    """``results.md`` with its made part anew, and the plots, by name. Raises ValueError where a mark is missing."""
    cases, records = load_cases(), read_records(folder)
    drawn = plots(cases, records)
    return {"results.md": with_section(text, section(cases, records, read_parts(), drawn)), **drawn}


def with_section(text: str, made: str) -> str:
    """The text with all between the marks replaced. Raises ValueError where a mark is missing."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"results.md lacks the mark {BEGIN if not begin else END}")
    return f"{before}{BEGIN}\n{made}{END}{after}"


def write(files: Mapping[str, str], into: Path) -> None:
    """Plots of which nothing is left to draw go."""
    into.mkdir(parents=True, exist_ok=True)
    for name in PLOTS:
        if name not in files:
            (into / name).unlink(missing_ok=True)
    for name, text in files.items():
        (into / name).write_text(text, encoding="utf-8")
        print(into / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, nargs="?", default=KEPT)
    parser.add_argument("--into", type=Path, default=ROOT / "docs")
    options = parser.parse_args()
    write(documents(options.folder, DOCUMENT.read_text(encoding="utf-8")), options.into)


if __name__ == "__main__":
    main()
