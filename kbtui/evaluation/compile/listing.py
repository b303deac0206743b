"""Reads what ptxas says of a kernel and what its PTX holds. Pure."""

import re
from dataclasses import dataclass

_REGISTERS = re.compile(r"Used (\d+) registers")
_SPILLS = re.compile(r"(\d+) bytes spill (?:stores|loads)")
_MMA = re.compile(r"^\s*(?:@%p\d+ )?(?:mma|wgmma|tcgen05)\.", re.MULTILINE)
_LOAD = re.compile(r"\bld\.global(?:\.\w+)*?(?:\.v(\d))?\.[bsuf](\d+)\b")
_ASYNC_COPY = re.compile(r"cp\.async\.c[ag]\.shared\.global(?:\.\w+::\w+)*\s*\[[^\]]*\]\s*,\s*\[[^\]]*\]\s*,\s*(\w+)")


@dataclass(frozen=True, slots=True)
class Listing:
    """Registers a thread, bytes it spills (stores + loads), tensor-core use, bytes of the widest global load."""

    registers: int
    spill_bytes: int
    mma: bool
    load_bytes_max: int


def read_listing(ptxas_log: str, ptx: str) -> Listing:
    """``ptxas_log`` is the output of ``ptxas -v``; functions that were not inlined count too."""
    return Listing(
        registers=max((int(n) for n in _REGISTERS.findall(ptxas_log)), default=0),
        spill_bytes=sum(int(n) for n in _SPILLS.findall(ptxas_log)),
        mma=_MMA.search(ptx) is not None,
        load_bytes_max=max((_load_bytes(m) for m in _LOAD.finditer(ptx)), default=0) or _async_bytes(ptx),
    )


def _load_bytes(match: re.Match[str]) -> int:
    return int(match.group(1) or 1) * int(match.group(2)) // 8


def _async_bytes(ptx: str) -> int:
    return max((int(size, 0) for size in _ASYNC_COPY.findall(ptx) if size[:1].isdigit()), default=0)
