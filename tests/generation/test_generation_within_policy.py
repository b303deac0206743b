"""What the playbook and the rewrites make is within the gate's static policy and keeps the signature."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbtui.domain.device import DATA_SHEETS
from kbtui.evaluation.policy import check_policy, check_signature
from kbtui.generation.playbook import load_entries
from kbtui.generation.rewrites import REWRITES, Target
from kbtui.generation.signature import input_names
from kbtui.problems import load_problem

SAMPLES = ("softmax", "rms_norm", "mat_vec", "linear_relu_div", "sdp_attn", "group_conv")
ENTRIES = [(p, e) for p in SAMPLES for e in load_entries(load_problem(p).spec.family)]


def verdicts(problem: str, source: str) -> list[str]:
    loaded = load_problem(problem)
    n_inputs = len(input_names(loaded, loaded.kernel_source))
    said = (check_policy(source, loaded.spec), check_signature(source, n_inputs))
    return [v.detail for v in said if not v.ok]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(ENTRIES), st.data())
def test_every_instantiation_is_within_the_policy(entry_of, data):
    problem, entry = entry_of
    params = {name: data.draw(st.sampled_from(values), label=name) for name, values in entry.grid}

    source = entry.instantiate(params, DATA_SHEETS["h200"], load_problem(problem).spec)

    assert verdicts(problem, source) == []


@pytest.mark.parametrize("problem", SAMPLES)
def test_every_rewrite_stays_within_the_policy(problem):
    loaded = load_problem(problem)
    target = Target.of(DATA_SHEETS["a100"], loaded.spec)

    refused = {e.summary: verdicts(problem, e.source) for r in REWRITES for e in r.apply(loaded.kernel_source, target)}

    assert {summary: why for summary, why in refused.items() if why} == {}
