"""Which cache a load or store goes through: past L1 (``.cg``), or written as a stream (``.cs``)."""

from collections.abc import Iterator

import libcst as cst

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Replacement, Source
from kbtui.generation.rewrites.syntax import calls_in, with_keyword, without_keywords

_PAST_L1, _STREAM = '".cg"', '".cs"'


def _edits(source: Source, _target: Target) -> Iterator[Edit]:
    for name, kernel in source.kernels.items():
        loads, stores = calls_in(kernel, "load"), calls_in(kernel, "store")
        if loads:
            yield _edit(source, loads, _PAST_L1, f"loads of {name} past L1", "loads_cg")
        if stores:
            yield _edit(source, stores, _STREAM, f"stores of {name} as a stream", "stores_cs")


def _edit(source: Source, calls: list[cst.Call], modifier: str, summary: str, mode: str) -> Edit:
    changes: dict[cst.CSTNode, Replacement] = dict.fromkeys(calls, _setter(modifier))
    return Edit(source.code_with(changes), summary, (("cache", mode),))


def _setter(modifier: str) -> Replacement:
    def set_modifier(node: cst.CSTNode) -> cst.CSTNode:
        # PTX has either a cache operator or an eviction priority, not both.
        call = without_keywords(cst.ensure_type(node, cst.Call), ("eviction_policy",))
        return with_keyword(call, "cache_modifier", cst.SimpleString(modifier))

    return set_modifier


REWRITE = Rewrite(
    "cache_modifier",
    "a kernel that loads or stores",
    (Bottleneck.DRAM, Bottleneck.EXTRA_PASSES, Bottleneck.LATENCY),
    ("stream_past_the_cache",),
    _edits,
)
