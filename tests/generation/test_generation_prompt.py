"""The prompt has its sections in order, with the numbers of this request and nothing left out silently."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hints import load_hints
from kbtui.domain.profile import Bottleneck, Diagnosis, Evidence, Finding
from kbtui.domain.proposal import Sibling
from kbtui.domain.verdict import Reason
from kbtui.generation.prompt import SECTIONS, build_prompt
from kbtui.generation.repair import Rejected
from kbtui.generation.sameness import Repeats
from kbtui.problems import load_problem

DIAGNOSIS = Diagnosis(
    "It reads the row three times.",
    (Finding(Bottleneck.EXTRA_PASSES, 0.8, (Evidence("dram", 412.5, "MB"), Evidence("bound", 268.4, "MB"))),),
    "4096x16384", 212.0, 131.6, "model",
)  # fmt: skip


def sections(prompt: str) -> dict[str, str]:
    parts = prompt.split("\n## ")
    parts[0] = parts[0].removeprefix("## ")
    return {part.split("\n", 1)[0]: part.split("\n", 1)[1] for part in parts}


def test_every_section_is_there_in_order_even_with_nothing_to_say(request_for):
    prompt = build_prompt(request_for("softmax"))

    found = sections(prompt)
    assert tuple(found) == SECTIONS
    assert found["Diagnosis"].strip() == "Not diagnosed yet."
    assert found["Kernel to improve"].strip() == "There is none yet."
    assert found["Hints"].strip() == "None."
    assert found["What was tried"].strip() == "Nothing yet."


def test_a_full_request_is_told_with_its_numbers(request_for):
    source = load_problem("softmax").kernel_source
    hint = load_hints()[0]
    request = request_for(
        "softmax", source=source, diagnosis=DIAGNOSIS, hints=(hint,), user_hints=("use two rows",),
        siblings=(Sibling("c0003", "num_warps: 8 to 16", "prune: slower than the incumbent", 0.93),),
    )  # fmt: skip

    found = sections(build_prompt(request, [Rejected(Reason.SIGNATURE, "kernel_function takes (x, y)")]))

    assert "kernel_function(x)" in found["Task"]
    assert "torch.softmax(x, dim=-1)" in found["Task"]
    assert "4096x16384" in found["Task"]
    assert "1e-06" in found["Task"]
    assert "A100-SXM4-80GB: compute capability 8.0, 108 SMs" in found["Hardware"]
    assert "modelled" in found["Hardware"]
    assert source.strip() in found["Kernel to improve"]
    assert "212.0 us" in found["Diagnosis"]
    assert "1.61 times the bound" in found["Diagnosis"]
    assert "extra passes (weight 0.80): dram 412 MB, bound 268 MB" in found["Diagnosis"]
    assert hint.advice in found["Hints"]
    assert "use two rows" in found["Hints"]
    assert "num_warps: 8 to 16: prune: slower than the incumbent (0.93 times" in found["What was tried"]
    assert "kernel_function takes (x, y)" in found["What was tried"]
    assert "def kernel_function(x)" in found["Answer"]


def test_evidence_is_told_in_the_words_of_every_screen(request_for):
    evidence = (Evidence("spilled_bytes", 15516.0, "bytes a thread"), Evidence("dram", 93.04, "% of peak"))
    diagnosis = replace(DIAGNOSIS, findings=(Finding(Bottleneck.SPILLS, 0.5, evidence),))

    told = sections(build_prompt(request_for("softmax", diagnosis=diagnosis)))["Diagnosis"]

    assert "spills (weight 0.50): spilled bytes 15,516 bytes a thread, dram 93 % of peak" in told


def test_a_copy_of_the_parent_is_not_asked_for(request_for):
    improved = build_prompt(request_for("softmax", source=load_problem("softmax").kernel_source))
    first = build_prompt(request_for("softmax"))

    assert "a copy of the kernel above is thrown away" in sections(improved)["Answer"]
    assert "kernel above" not in sections(first)["Answer"]


@pytest.mark.parametrize(
    ("repeats", "told"),
    [
        (Repeats(copies=1), "- Your last reply said nothing new: 1 was the kernel above as it is."),
        (Repeats(again=2), "- Your last 2 replies said nothing new: 2 were what was tried before."),
        (Repeats(2, 1), "- Your last 3 replies said nothing new: 2 were the kernel above as it is, 1 was what was"),
    ],
)
def test_a_model_that_repeats_itself_is_told_so_with_the_count(request_for, repeats, told):
    request = request_for("softmax", source=load_problem("softmax").kernel_source)

    assert told in sections(build_prompt(request, (), repeats))["What was tried"]


@given(st.integers(0, 99), st.integers(0, 99))
def test_what_is_told_of_repeats_is_one_short_line(copies, again):
    told = Repeats(copies, again).told
    assert bool(told) == bool(copies + again)
    assert len(told) < 200
    assert "\n" not in told


def test_the_signature_is_the_parents(request_for):
    source = load_problem("linear_relu_div").kernel_source

    prompt = build_prompt(request_for("linear_relu_div", source=source))

    assert "kernel_function(x, weight, bias)" in prompt


def test_the_same_request_gives_the_same_text(request_for):
    assert build_prompt(request_for("mat_vec")) == build_prompt(request_for("mat_vec"))
