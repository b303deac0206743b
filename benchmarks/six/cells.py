"""What a table's cell says of a number, or in a few words why there is none. Pure."""

from benchmarks.six.record import Against, Contest
from benchmarks.six.summary import NOT_MEASURED

NOTHING = "—"
_FEW_WORDS = {"is not installed": "not installed", "has no kernel for this": "has no such kernel"}


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def beside(contest: Contest, name: str) -> str:
    """The ratio with its interval, or in a few words why there is none."""
    found = contest.beside(name)
    if found is not None and found.ratio is not None and found.low is not None and found.high is not None:
        return f"{found.ratio:.3f} ({found.low:.3f}–{found.high:.3f})"
    error = next((a.error for a in contest.against if a.name == name and a.error), "")
    return next((words for sign, words in _FEW_WORDS.items() if sign in error), NOT_MEASURED)


def ratio_of(found: Against | None) -> str:
    return f"{found.ratio:.3f}" if found and found.ratio is not None else NOT_MEASURED
