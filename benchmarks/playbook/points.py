"""Which points of which entries run, each with its source in a file. Effects: writes files."""

import itertools
import random
import re
from pathlib import Path
from typing import Any

from benchmarks.playbook.rows import Row
from kbtui.generation.playbook import load_entries
from kbtui.generation.playbook.entry import Entry
from kbtui.problems import load_problem

#: After so many draws running that gave no new point, a grid holds hardly any more.
DRAWS_IN_VAIN = 500


def all_rows(
    problems: list[str], n_tiles: int, chip: Any, folder: Path, only: list[str], asked: list[str]
) -> list[Row]:
    """Rows to fill, every entry's defaults first; each with its source in a file."""
    rows = []
    for problem in problems:
        spec = load_problem(problem).spec
        for entry in load_entries(spec.family):
            if not any(part in entry.name for part in only):
                continue
            points = named_points(entry, asked) or instantiations(entry, n_tiles, seed=0)
            for number, params in enumerate(points):
                path = folder / f"{entry.name}_{number}.py"
                path.write_text(entry.instantiate(params, chip, spec))
                rows.append({"problem": problem, "entry": entry.name, "number": number, "params": params,
                             "summary": entry.summarise(params), "path": str(path)})  # fmt: skip
    return sorted(rows, key=lambda row: row["number"])


def instantiations(entry: Entry, n_tiles: int, seed: int) -> list[dict[str, Any]]:
    """The defaults, then points with one or two parameters elsewhere on the grid, seeded by the entry's name."""
    rng = random.Random(f"{seed}/{entry.name}")
    points = [entry.defaults()]
    in_vain = 0
    while len(points) <= n_tiles and in_vain < DRAWS_IN_VAIN:
        names = rng.sample([name for name, values in entry.grid if name != "PRECISION" and len(values) > 1], k=2)
        moved = {name: rng.choice(values) for name, values in entry.grid if name in names}
        point = entry.defaults() | moved
        if point in points or entry.why_kept_out(point) is not None:
            in_vain += 1
        else:
            points.append(point)
            in_vain = 0
    return points


def named_points(entry: Entry, asked: list[str]) -> list[dict[str, Any]]:
    """The defaults, then every combination of the values that ``--points`` names for this entry; [] if for none."""
    points = []
    for name, *choices in (text.split() for text in asked):
        if name == entry.name:
            values = {key: _values(entry, key, listed) for key, _, listed in (c.partition("=") for c in choices)}
            points += [dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())]
    found = [entry.defaults()] if points else []
    for point in (entry.defaults() | moved for moved in points):
        if point not in found and entry.why_kept_out(point) is None:
            found.append(point)
    return found


def _values(entry: Entry, name: str, listed: str) -> list[Any]:
    """As the grid has them; a number that is not on the grid may be tried too."""
    on_grid = {str(value): value for value in dict(entry.grid)[name]}
    return [on_grid.get(text, int(text) if text.isdigit() else text) for text in listed.split(",")]


def in_dtype(problem: str, dtype: str, folder: Path) -> str:
    """A copy of the problem's folder with every shape in this dtype."""
    found = load_problem(problem)
    made = folder / dtype / Path(found.path).name
    made.mkdir(parents=True)
    declared = (Path(found.path) / "problem.toml").read_text(encoding="utf-8")
    (made / "problem.toml").write_text(re.sub(r'(?<=\bdtype = )"\w+"', f'"{dtype}"', declared), encoding="utf-8")
    (made / "reference.py").write_text(found.reference_source, encoding="utf-8")
    return str(made)
