"""Pages that a script keeps a part of: what stands between two marks is its, the rest is written by hand. Pure."""


def between(page: str, mark: str, text: str) -> str:
    """The page with what stands between two marks replaced. Raises ValueError where it has no such marks."""
    begin, end = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
    before, _, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not ended:
        raise ValueError(f"the page has no {begin} ... {end}")
    return f"{before}{begin}\n{text}\n{end}{after}"
