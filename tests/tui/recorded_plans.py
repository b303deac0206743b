"""The forty candidates of the recorded softmax run: what each changes, and its time or what the gate says of it."""

import random
from dataclasses import dataclass, field, replace

from kbtui.domain.verdict import Proof, Reason, Verdict, rejected, unverified


@dataclass(frozen=True)
class Plan:
    """One candidate as it will turn out: its time on the first shape, or the gate's reason."""

    summary: str
    structure: str
    operator: str
    us: float
    parent: int | None = None
    hint: str | None = None
    generator: str = "playbook"
    fails: Verdict | None = None
    options: dict[str, object] = field(default_factory=dict)


_WRONG = rejected(
    Reason.WRONG_VALUES, 1, Proof.GPU, "relative L2 error 3.4e-01 on 4096x16384 normal, limit 2.0e-06", 12
)
_SYNTAX = rejected(Reason.SYNTAX, 0, Proof.NONE, "'(' was never closed", 17)
_BIG = rejected(Reason.OUT_OF_RESOURCES, 0, Proof.NONE, "263,168 B of shared memory, 232,448 B allowed on sm_90")
_OURS = unverified(Reason.HARNESS_FAILED, 1, Proof.NONE, "the referee was killed by the kernel (out of memory)")

PLANS: tuple[Plan, ...] = (
    Plan("the problem's first kernel, one row a program", "one_row", "seed", 187.4, generator="seed"),
    Plan("one row a program, 16 warps", "one_row", "one_row", 141.2, options={"warps": 16}),
    Plan("one row a program, 32 warps", "one_row", "one_row", 141.7, options={"warps": 32}),
    Plan("online in tiles of 4096, 8 warps", "online", "online", 158.3, options={"block": 4096}),
    Plan("online in tiles of 2048, 4 warps", "online", "online", 171.9, options={"block": 2048, "warps": 4}),
    Plan("two rows a program, 8 warps", "rows", "several_rows", 204.1, options={"rows": 2}),
    Plan("four rows a program, 16 warps", "rows", "several_rows", 0, fails=_BIG, options={"rows": 4, "warps": 16}),
    Plan("online in tiles of 8192, 16 warps", "online", "online", 143.0, options={"block": 8192, "warps": 16}),
    Plan(
        "evict-first on x",
        "one_row",
        "eviction_policy",
        137.9,
        2,
        "evict_first_on_streams",
        "rewrites",
        options={"warps": 16, "evict": True},
    ),
    Plan(
        "exp2 for exp",
        "one_row",
        "exp2_for_exp",
        138.6,
        2,
        "cheaper_exponential",
        "rewrites",
        options={"warps": 16, "exp2": True},
    ),
    Plan("num_warps 16 to 24", "one_row", "num_warps", 0, 2, None, "rewrites", fails=_SYNTAX, options={"warps": 24}),
    Plan(
        "two rows a program, 16 warps",
        "rows",
        "several_rows",
        149.9,
        2,
        "several_rows_a_program",
        options={"warps": 16},
    ),
    Plan(
        "online, 3 stages",
        "online",
        "num_stages",
        140.8,
        8,
        "deeper_pipeline",
        "rewrites",
        options={"block": 8192, "warps": 16, "stages": 3},
    ),
    Plan(
        "online, 4 stages",
        "online",
        "num_stages",
        142.2,
        8,
        "deeper_pipeline",
        "rewrites",
        options={"block": 8192, "warps": 16, "stages": 4},
    ),
    Plan(
        "evict-first on x, exp2 for exp",
        "one_row",
        "exp2_for_exp",
        135.1,
        9,
        "cheaper_exponential",
        "rewrites",
        options={"warps": 16, "evict": True, "exp2": True},
    ),
    Plan(
        "evict-first on x, 32 warps",
        "one_row",
        "num_warps",
        139.0,
        9,
        None,
        "rewrites",
        options={"warps": 32, "evict": True},
    ),
    Plan("split in two kernels", "online", "split", 0, None, None, fails=_WRONG, options={"block": 1024, "warps": 2}),
    Plan(
        "online in tiles of 16384, 16 warps",
        "online",
        "online",
        0,
        8,
        None,
        fails=_OURS,
        options={"block": 16384, "warps": 16},
    ),
    Plan(
        "qwen: fused scale, 16 warps",
        "one_row",
        "qwen2.5-coder:7b",
        0,
        15,
        "cheaper_exponential",
        "llm",
        fails=_WRONG,
        options={"warps": 12, "exp2": True},
    ),
    Plan(
        "qwen: two rows, exp2",
        "rows",
        "qwen2.5-coder:7b",
        136.4,
        15,
        "several_rows_a_program",
        "llm",
        options={"warps": 12, "exp2": True},
    ),
)

_TAIL = (
    ("one row, {w} warps, exp2", "one_row", "num_warps", "cheaper_exponential"),
    ("two rows a program, {w} warps, exp2", "rows", "several_rows", "several_rows_a_program"),
    ("online, tiles of 8192, {w} warps, evict-first", "online", "online", "evict_first_on_streams"),
    ("three rows a program, {w} warps", "rows", "several_rows", "several_rows_a_program"),
)


def plans() -> tuple[Plan, ...]:
    """Forty plans: the written ones, then refinements of the best."""
    rng = random.Random(11)
    out = list(PLANS)
    for i in range(len(PLANS), 39):
        summary, structure, operator, hint = _TAIL[i % len(_TAIL)]
        warps = (2, 4, 8, 12, 16, 20, 28)[i % 7]
        us = 135.1 * rng.uniform(0.995, 1.12)
        fails = _WRONG if i in (25, 33) else None
        options: dict[str, object] = {
            "warps": warps,
            "exp2": True,
            "evict": i % 3 == 0,
            "rows": 2 + i % 3,
            "stages": i % 4 + 1,
        }
        out.append(
            Plan(
                summary.format(w=warps),
                structure,
                operator,
                us,
                15,
                hint,
                "rewrites" if i % 2 else "playbook",
                fails,
                options,
            )
        )
    best = Plan("two rows a program, exp2, evict-first", "rows", "several_rows", 129.8, 15, "several_rows_a_program")
    out.append(replace(best, options={"rows": 2, "warps": 16, "exp2": True, "evict": True}))
    return tuple(out)
