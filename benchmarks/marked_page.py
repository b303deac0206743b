"""Pages that a script keeps a part of: what stands between two marks is its, the rest is written by hand. Pure."""


def between(page: str, mark: str, text: str) -> str:
    """The page with what stands between two marks replaced. Raises ValueError where one is missing."""
    return replaced(page, f"<!-- {mark} -->", f"<!-- end of {mark} -->", f"{text}\n")


def replaced(page: str, begin: str, end: str, text: str) -> str:
    """The same for marks in any words, with whole lines in between. Raises ValueError, which names what is missing."""
    before, begun, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not ended:
        raise ValueError(f"the page has no {begin} ... {end}: it lacks the mark {end if begun else begin}")
    return f"{before}{begin}\n{text}{end}{after}"
