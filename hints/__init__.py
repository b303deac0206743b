"""Expert hints as data files, their loader, and the choice of hints for a diagnosis."""

from hints.choose import choose_hints
from hints.load import load_hints

__all__ = ["choose_hints", "load_hints"]
