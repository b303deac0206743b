"""What the ladder saves: on recorded pools, and in searches that ran with it and without it on a GPU. Pure."""

from benchmarks.six.markdown import Row
from benchmarks.six.parts import WHOLE, Parts, Plain, problem_of, row_of

#: Of the time that the same search takes without the ladder.
ASKED = 0.5
#: As ``ladder_off.py`` names a search's first draft; c0001 is the first kernel.
FIRST_DRAFT = "c0002"


def ladder_words(parts: Parts) -> str:
    """Whether the ladder saves what was asked: on pools, and on a GPU by how many shapes."""
    shares = {pool["name"]: _of_ladder_off(pool) for pool in parts.study["pools"]}
    known = {name: share for name, share in shares.items() if share is not None}
    met = sum(share <= ASKED for share in known.values())
    each = ", ".join(f"{problem_of(name)} {share:.2f}" for name, share in known.items())
    on_pools = f"on recorded pools in {met} of {len(shares)}, of the time without it: {each}" if known else ""
    of_several = [one for one in parts.without_ladder if len(one["shapes"]) > 1]
    of_one = [one for one in parts.without_ladder if len(one["shapes"]) == 1]
    on_gpu = [_on_gpu(of_several, "searches of several shapes"), _on_gpu(of_one, "searches of one shape")]
    told = list(filter(None, on_gpu)) or ["on a GPU not measured"]
    return "; ".join(filter(None, (on_pools, *told))) + "."


def _of_ladder_off(pool: Plain) -> float | None:
    """Median seconds until within 2 % of the pool's best, over those of the same search without the ladder."""
    mine, off = row_of(pool, WHOLE), row_of(pool, "ladder off")
    if not mine or not off or not mine["found_wall_s"] or not off["found_wall_s"]:
        return None
    return float(mine["found_wall_s"] / off["found_wall_s"])


def _on_gpu(searches: list[Plain], what: str) -> str:
    if not searches:
        return ""
    met = sum(_at_most(one) <= ASKED for one in searches)
    each = ", ".join(f"{_name(one)} {_share(one)}" for one in searches)
    return f"on a GPU in {met} of {len(searches)} {what}: {each}"


def _name(one: Plain) -> str:
    return str(one["sample"]) + (f" (seed {one['seed']})" if one["seed"] else "")


def _at_most(one: Plain, less_s: tuple[float, float] = (0.0, 0.0)) -> float:
    """Time until within 2 % with the ladder, over that without it (all that it had where it never got there).

    ``less_s``: seconds that each is spared of it.
    """
    off_s = one["off"]["within_wall_s"] or one["off"]["wall_s"]
    return float((one["on"]["within_wall_s"] - less_s[0]) / (off_s - less_s[1]))


def _share(one: Plain, less_s: tuple[float, float] = (0.0, 0.0)) -> str:
    found = one["off"]["within_wall_s"] is not None
    return f"{_at_most(one, less_s):.2f}" if found else f"under {_at_most(one, less_s):.2f}"


def ladder_rows(parts: Parts) -> tuple[Row, list[Row]]:
    """Head and rows of a table: every search that ran both ways on a GPU."""
    head = (
        "search", "shapes", "with it, s", "without it, s", "of the time", "opening left out", "within 2 % was",
        "candidates in all, with it",
    )  # fmt: skip
    return head, [_ladder_row(one) for one in parts.without_ladder]


def _ladder_row(one: Plain) -> Row:
    on, off = one["on"], one["off"]
    found = off["within_wall_s"]
    opening = on["open_wall_s"], off["open_wall_s"]
    by = "the first draft" if on["within"] == FIRST_DRAFT else on["within"]
    return (
        _name(one),
        str(len(one["shapes"])),
        f"{on['within_wall_s']:.1f}",
        f"{found:.1f}" if found is not None else f"not in {off['wall_s']:.0f}",
        _share(one),
        _share(one, opening),
        by,
        str(on["n_candidates"]),
    )


def ladder_note(parts: Parts) -> str:
    """How those searches were made; empty where there are none."""
    searches = parts.without_ladder
    if not searches:
        return ""
    commands = "; ".join(f"`{command}`" for command in dict.fromkeys(one["command"] for one in searches))
    dates = ", ".join(sorted({one["date"][:10] for one in searches}))
    cards = len({one["device"].get("uuid") for one in searches})
    return (
        "The same search twice on one card, with the ladder and with every candidate at full fidelity as soon as it "
        "compiles: seconds until each held a kernel within 2 % of what the first ended with. With the ladder that is "
        "when the kernel first led on any rung, and what it is worth was measured at full fidelity afterwards; without "
        "it, when it had been measured so. Opening the problem counts in both, and is left out in one column. A row is "
        f"one run of one seed; {len(searches)} in all, on {cards} {searches[0]['device']['name']}; what has no row was "
        f"not searched both ways. {commands}, {dates}."
    )
