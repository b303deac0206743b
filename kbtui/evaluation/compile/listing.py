"""Reads what ptxas says of a kernel and what its PTX holds. Pure."""

import re
from collections import Counter
from dataclasses import dataclass

_REGISTERS = re.compile(r"Used (\d+) registers")
_SPILLS = re.compile(r"(\d+) bytes spill (?:stores|loads)")
_MMA = re.compile(r"^\s*(?:@%p\d+ )?(?:mma|wgmma|tcgen05)\.", re.MULTILINE)
_LOAD = re.compile(r"\bld\.global(?:\.\w+)*?(?:\.v(\d))?\.[bsuf](\d+)\b")
_ASYNC_COPY = re.compile(r"cp\.async\.c[ag]\.shared\.global(?:\.\w+::\w+)*\s*\[[^\]]*\]\s*,\s*\[[^\]]*\]\s*,\s*(\w+)")
#: An instruction's name with its modifiers, its predicate left out.
_OPCODE = re.compile(r"^[ \t]*(?:@!?%p\d+[ \t]+)?([a-z][a-z0-9_]*(?:\.[a-z0-9_:]+)+)[ \t]", re.MULTILINE)
#: A label on its own, and a branch to one: a branch back closes a loop (PTX ISA, "Control Flow Instructions").
_LABEL = re.compile(r"^[ \t]*(\$?[\w$]+):[ \t]*(?://.*)?$", re.MULTILINE)
_BRANCH = re.compile(r"^[ \t]*(?:@!?%p\d+[ \t]+)?bra(?:\.uni)?[ \t]+(\$?[\w$]+);", re.MULTILINE)
#: In order: the first that matches names the instruction (PTX ISA, "Instruction Set").
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("wide_division", r"(?:div|rem)\.[su]64"),
        ("division", r"(?:div|rem)\.[su](?:16|32)"),
        ("float_division", r"div\."),
        ("special", r"(?:ex2|lg2|sin|cos|tanh|rcp|rsqrt|sqrt)\."),
        ("load", r"ld\.global"),
        ("async_copy", r"cp\.async\.(?:c[ag]|bulk\.tensor)"),
        ("store", r"st\.global"),
        ("shared", r"(?:ld|st|ldmatrix|stmatrix)\.(?:\w+\.)*shared|(?:ldmatrix|stmatrix)\."),
        ("barrier", r"(?:bar|barrier)\."),
        ("float", r"(?:fma|add|sub|mul|max|min|setp|neg|abs)\.(?:\w+\.)*(?:f16|f32|bf16|f16x2|bf16x2|f64)"),
        ("integer", r"(?:mad|add|sub|mul|max|min|setp|shl|shr|and|or|xor|selp|prmt|bfe|bfi|lop3)\."),
    )
)


@dataclass(frozen=True, slots=True)
class Listing:
    """Registers a thread, bytes it spills (stores + loads), tensor-core use, bytes of the widest global load.

    ``mix``: instructions of the PTX by kind, as in ``KernelResources``.
    """

    registers: int
    spill_bytes: int
    mma: bool
    load_bytes_max: int
    mix: tuple[tuple[str, int], ...] = ()


def read_listing(ptxas_log: str, ptx: str) -> Listing:
    """``ptxas_log`` is the output of ``ptxas -v``; functions that were not inlined count too."""
    return Listing(
        registers=max((int(n) for n in _REGISTERS.findall(ptxas_log)), default=0),
        spill_bytes=sum(int(n) for n in _SPILLS.findall(ptxas_log)),
        mma=_MMA.search(ptx) is not None,
        load_bytes_max=max(_async_bytes(ptx), *(_load_bytes(m) for m in _LOAD.finditer(ptx)), 0),
        mix=instruction_mix(ptx),
    )


def instruction_mix(ptx: str) -> tuple[tuple[str, int], ...]:
    """Instructions of a PTX text by kind, kinds that do not occur left out; ``loop_barrier`` are barriers too."""
    loops = _loops(ptx)
    counts: Counter[str] = Counter()
    for match in _OPCODE.finditer(ptx):
        kind = _kind(match.group(1))
        if kind is not None:
            counts[kind] += 1
        if kind == "barrier" and any(first < match.start() < last for first, last in loops):
            counts["loop_barrier"] += 1
    return tuple(sorted(counts.items()))


def _loops(ptx: str) -> list[tuple[int, int]]:
    """Where loops begin and end in the text: a label and the last branch back to it."""
    labels = {m.group(1): m.start() for m in _LABEL.finditer(ptx)}
    targets = ((labels.get(m.group(1)), m.start()) for m in _BRANCH.finditer(ptx))
    return [(label, branch) for label, branch in targets if label is not None and label < branch]


def _kind(opcode: str) -> str | None:
    return next((kind for kind, pattern in _KINDS if pattern.match(opcode)), None)


def _load_bytes(match: re.Match[str]) -> int:
    return int(match.group(1) or 1) * int(match.group(2)) // 8


def _async_bytes(ptx: str) -> int:
    return max((int(size, 0) for size in _ASYNC_COPY.findall(ptx) if size[:1].isdigit()), default=0)
