"""What a candidate's text alone says, worked out once: it is asked for at every look ahead and at every rung."""

from functools import lru_cache

from kbtui.domain.problem import ProblemSpec
from kbtui.domain.verdict import Verdict
from kbtui.evaluation.policy import check_policy, check_signature

#: More than wait in any search at a time.
_KEPT = 1024


@lru_cache(maxsize=_KEPT)
def judged_by_text(source: str, spec: ProblemSpec, n_inputs: int) -> Verdict:
    """Policy, then signature. ``n_inputs`` are a call's arguments."""
    verdict = check_policy(source, spec)
    return check_signature(source, n_inputs) if verdict.ok else verdict
