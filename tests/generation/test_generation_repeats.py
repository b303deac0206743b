"""A model that says again what was said before is told so in its next prompt, with how often."""

from dataclasses import replace

import pytest

from kbtui.domain.candidate import source_sha
from kbtui.generation.llm import LlmGenerator
from kbtui.generation.ollama_chat import OllamaChat
from kbtui.problems import load_problem
from tests.fakes.ollama_server import FakeOllama, serve

SOURCE = load_problem("softmax").kernel_source
BETTER = SOURCE.replace("BLOCK=4096", "BLOCK=8192")


@pytest.fixture
def fake():
    with serve(FakeOllama()) as server:
        yield server


@pytest.fixture
def generator(fake):
    return LlmGenerator("coder:7b", OllamaChat(fake.host))


def told_last(fake) -> str:
    """What the last prompt said was tried."""
    return fake.requests[-1]["messages"][0]["content"].split("## What was tried\n")[1].split("\n\n## ")[0]


def code(source: str, remark: str = "") -> str:
    return f"```python\n{source}\n# {remark}\n```"


def test_the_next_prompt_tells_a_model_how_often_it_repeated_itself(fake, generator, request_for):
    asked = [request_for("softmax", source=SOURCE, limit=1, seed=seed) for seed in range(4)]
    fake.replies[:] = [code(SOURCE), code(SOURCE, "again"), code(BETTER), code(BETTER, "the same"), code(SOURCE)]

    assert generator.propose(asked[0]) == ()
    assert "Your last reply said nothing new: 1 was the kernel above" in told_last(fake)

    assert generator.propose(asked[1])
    assert "Your last 2 replies said nothing new: 2 were the kernel above" in told_last(fake)

    assert generator.propose(asked[2]) == ()
    assert "Your last reply said nothing new: 1 was what was tried before" in told_last(fake)

    assert generator.propose(asked[3]) == ()
    assert "3 replies said nothing new: 2 were the kernel above as it is, 1 was what was tried" in told_last(fake)


def test_a_new_kernel_ends_the_count_and_so_nothing_is_told(fake, generator, request_for):
    fake.replies[:] = [code(SOURCE), code(BETTER), code(SOURCE.replace("4096", "1024"))]

    assert generator.propose(request_for("softmax", source=SOURCE, limit=1, seed=1))
    assert generator.propose(request_for("softmax", source=SOURCE, limit=1, seed=2))

    assert told_last(fake) == "Nothing yet."


def test_a_copy_of_one_parent_was_tried_before_where_the_prompt_shows_another(fake, generator, request_for):
    fake.replies[:] = [code(SOURCE)]
    assert generator.propose(request_for("softmax", source=SOURCE, limit=1, seed=1)) == ()

    assert generator.propose(request_for("softmax", source=BETTER, limit=1, seed=2)) == ()

    assert "3 replies said nothing new: 3 were what was tried before" in told_last(fake)
    assert "the kernel above as it is" not in told_last(fake)


def test_a_kernel_that_another_generator_made_before_is_told_as_tried(fake, generator, request_for):
    seen = frozenset({source_sha(f"{BETTER}")})
    fake.replies[:] = [f"```python\n{BETTER}```"]
    request = replace(request_for("softmax", source=SOURCE, limit=1), seen=seen)

    assert generator.propose(request) == ()

    assert "1 was what was tried before" in told_last(fake)
