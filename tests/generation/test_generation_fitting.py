"""A prompt is shortened from its least telling end until it fits, and never loses its task."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.domain.proposal import Sibling
from kbtui.domain.verdict import Reason
from kbtui.generation.fitting import LEAST_REPLY_TOKENS, MOST_CONTEXT, Fitted, fit_prompt, tokens_of
from kbtui.generation.prompt import SECTIONS, build_prompt
from kbtui.generation.repair import Rejected
from kbtui.generation.sameness import normalised_sha
from kbtui.problems import load_problem

SOURCE = load_problem("softmax").kernel_source or ""
REJECTED = (Rejected(Reason.SYNTAX, "the reply holds no Python code"),)


@pytest.fixture
def full(request_for):
    siblings = tuple(Sibling(f"c{n:04}", f"attempt {n} " + "and so on " * 12, "prune: slower", 1.0) for n in range(12))
    return replace(request_for("softmax", source=SOURCE), siblings=siblings)


def test_a_prompt_that_fits_is_the_whole_prompt(full):
    fitted = fit_prompt(full, REJECTED, None)

    assert isinstance(fitted, Fitted)
    assert fitted.prompt == build_prompt(full, REJECTED)
    assert fitted.left_out == ()


def test_whatever_the_context_the_prompt_and_a_whole_kernel_fit_in_it(full):
    whole = tokens_of(build_prompt(full, REJECTED)) + LEAST_REPLY_TOKENS
    n_left_out = []
    for model_tokens in range(LEAST_REPLY_TOKENS, whole + 200, 20):
        fitted = fit_prompt(full, REJECTED, model_tokens)
        if isinstance(fitted, int):
            assert fitted > model_tokens
            continue
        assert tokens_of(fitted.prompt) + fitted.reply_tokens <= fitted.context_tokens <= model_tokens
        assert fitted.reply_tokens >= LEAST_REPLY_TOKENS
        assert all(f"## {title}" in fitted.prompt for title in SECTIONS)
        assert SOURCE.strip() in fitted.prompt
        n_left_out.append(len(fitted.left_out))
    assert n_left_out == sorted(n_left_out, reverse=True)
    assert n_left_out[0] >= 2
    assert n_left_out[-1] == 0


def test_the_latest_attempts_are_the_last_to_go(full):
    whole = tokens_of(build_prompt(full, ())) + LEAST_REPLY_TOKENS
    fitted = fit_prompt(full, (), whole - 1)

    assert isinstance(fitted, Fitted)
    assert "attempt 11 " in fitted.prompt
    assert "attempt 0 " not in fitted.prompt
    assert fitted.left_out == ("left 8 earlier attempts out of the prompt",)


def test_a_model_that_claims_more_than_a_server_would_allocate_is_not_believed(full):
    fitted = fit_prompt(full, (), 10_000_000)
    assert isinstance(fitted, Fitted)
    assert fitted.context_tokens <= MOST_CONTEXT


@given(st.text(max_size=300))
def test_any_text_has_a_sha_and_the_same_text_the_same(text):
    assert normalised_sha(text) == normalised_sha(text)


def test_comments_docstrings_and_spacing_say_nothing_and_a_number_does():
    other = SOURCE.replace("\n\n", "\n# a remark\n\n").replace("import torch\n", '"""Mine."""\nimport torch\n')
    assert other != SOURCE
    assert normalised_sha(other) == normalised_sha(SOURCE)
    assert normalised_sha(SOURCE.replace("4096", "2048")) != normalised_sha(SOURCE)
