"""Trim ncu's raw pages to the columns that the parser reads: a launch's identity and the metrics asked for. Pure."""

import csv
import io

from kbtui.evaluation.profiling import metrics

_IDENTITY = ("ID", "Process Name", "Kernel Name", "Block Size", "Grid Size", "Device", "CC")


def split(page: str, counts: list[int]) -> list[str]:
    """One page for each of several calls that were profiled in turn, by how many launches each made."""
    lines = page.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
    launches = [i for i, line in enumerate(lines) if i > start and line[:2].startswith('"') and line[1:2].isdigit()]
    head = lines[start : launches[0]] if launches else lines[start:]
    pages, taken = [], 0
    for count in counts:
        mine = [lines[i] for i in launches[taken : taken + count]]
        pages.append("\n".join((*head, *mine)) + "\n")
        taken += count
    return pages


def trimmed(page: str, arch: int) -> str:
    """The page with its preamble, its header, its units and its launches, columns of no use left out."""
    lines = page.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return page
    rows = list(csv.reader(lines[start:]))
    wanted = {*_IDENTITY, *metrics.chosen(arch)}
    kept = [i for i, name in enumerate(rows[0]) if name in wanted]
    out = io.StringIO()
    written = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    written.writerows([row[i] for i in kept] for row in rows if len(row) == len(rows[0]))
    return "\n".join((*lines[:start], out.getvalue()))
