"""Expert structures per family of operation, as source templates, and the generator that instantiates them."""

from kbtui.generation.playbook.entry import Entry, load_entries
from kbtui.generation.playbook.propose import Playbook

__all__ = ["Entry", "Playbook", "load_entries"]
