"""From a model's reply to a source the gate can run: deterministic parsing and mending. Pure."""

from collections.abc import Sequence

from kbtui.domain.verdict import Reason
from kbtui.generation.repair.mend import mend
from kbtui.generation.repair.parse import find_code
from kbtui.generation.repair.values import FoundCode, Mended, Rejected


def repair(reply: str, inputs: Sequence[str], parent: str | None = None) -> Mended | Rejected:
    """A source with ``kernel_function(*inputs)`` made of a reply, with what was mended, or why there is none.

    ``parent``: the kernel that the reply is about; what the reply uses and leaves out is taken from it.
    Never raises, whatever the reply; the same reply gives the same answer; a good source is left as it is.
    """
    found = find_code(reply)
    if found is None or not found.code.strip():
        return Rejected(Reason.SYNTAX, "the reply holds no Python code; answer with one fenced code block")
    mended = mend(found.code, inputs, parent)
    if isinstance(mended, Rejected):
        cut_off = " (the reply was cut off)" if found.cut_off else ""
        return Rejected(mended.reason, mended.detail + cut_off)
    return Mended(mended.source, (*found.notes, *mended.notes))


__all__ = ["FoundCode", "Mended", "Rejected", "find_code", "mend", "repair"]
