"""How well the scheduler spends, over planted landscapes: python -m benchmarks.landscape_study [FIELD=VALUE ...].

Needs no GPU: landscapes, noise and the cost of each rung are those of benchmarks/landscapes.py.
"""

import sys
from collections import Counter
from dataclasses import fields, replace
from statistics import mean, median

from benchmarks.landscapes import regret, search
from kbtui.scheduler.policy import DEFAULT_POLICY, Policy

N_LANDSCAPES = 60
BUDGETS_S = (180.0, 600.0)


def policy_of(words: list[str]) -> Policy:
    kinds = {f.name: type(getattr(DEFAULT_POLICY, f.name)) for f in fields(Policy)}
    pairs = (word.split("=", 1) for word in words)
    return replace(DEFAULT_POLICY, **{name: kinds[name](value) for name, value in pairs})


def study(wall_s: float, policy: Policy) -> str:
    searches = [search(seed, wall_s, policy) for seed in range(N_LANDSCAPES)]
    short = [regret(*one) for one in searches]
    seconds: Counter[int] = Counter()
    for _, device in searches:
        seconds.update(device.seconds)
    shares = ", ".join(f"r{rung} {s / seconds.total():.0%}" for rung, s in sorted(seconds.items()))
    tried = mean(len(engine.state.tried) for engine, _ in searches)
    return (
        f"{wall_s:.0f} s: {100 * mean(short):.1f} % short of the best (median {100 * median(short):.1f} %), "
        f"{tried:.0f} candidates; {shares}"
    )


if __name__ == "__main__":
    for budget_s in BUDGETS_S:
        print(study(budget_s, policy_of(sys.argv[1:])), flush=True)
