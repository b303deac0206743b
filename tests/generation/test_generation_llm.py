"""The language-model generator over a real HTTP server of our own: replies, faults, stops, clear words."""

import socket
import threading
import time

import pytest

from kbtui.errors import DeviceError, UsageError
from kbtui.generation.llm import LlmGenerator, context_tokens, list_models, reachable
from kbtui.generation.ollama_chat import OllamaChat, Timeouts
from kbtui.problems import load_problem
from tests.fakes.ollama_server import FakeOllama, Fault, serve

SOURCE = load_problem("softmax").kernel_source
BETTER = SOURCE.replace("BLOCK=4096", "BLOCK=8192")
QUICK = Timeouts(connect_s=2.0, silence_s=5.0, reply_s=10.0)


@pytest.fixture
def fake():
    with serve(FakeOllama(replies=[f"Here:\n```python\n{BETTER}```\n"])) as server:
        yield server


@pytest.fixture
def generator(fake, monkeypatch):
    monkeypatch.setattr("kbtui.generation.llm._BACK_OFF_S", 0.01)
    return LlmGenerator("coder:7b", chat=OllamaChat(fake.host, QUICK))


@pytest.fixture
def asked(request_for):
    return request_for("softmax", source=SOURCE, structure="softmax/first", limit=1)


def test_a_reply_becomes_a_proposal_with_prompt_and_reply_attached(fake, generator, asked):
    (proposal,) = generator.propose(asked)

    assert proposal.source == BETTER
    assert (proposal.origin.generator, proposal.origin.operator) == ("llm", "coder:7b")
    attached = {a.name: a.content.decode() for a in proposal.attachments}
    assert attached["prompt.md"] == fake.requests[0]["messages"][0]["content"]
    assert attached["reply.txt"] == f"Here:\n```python\n{BETTER}```\n"
    assert "7 tokens" in proposal.notes[-1]


def test_the_seed_and_a_context_that_holds_the_prompt_are_sent(fake, generator, request_for):
    generator.propose(request_for("softmax", source=SOURCE, limit=1, seed=5))

    options = fake.requests[0]["options"]
    assert options["seed"] == 5000
    assert options["num_ctx"] >= len(fake.requests[0]["messages"][0]["content"]) / 4 + options["num_predict"]
    assert context_tokens("x" * 1_000_000) == 32768


def test_several_replies_are_asked_with_different_seeds_and_twins_dropped(fake, generator, request_for):
    proposals = generator.propose(request_for("softmax", source=SOURCE, limit=5))

    assert len(proposals) == 1  # the server gives the same reply each time
    assert len({r["options"]["seed"] for r in fake.requests}) == len(fake.requests) == 3


def test_a_seen_source_is_not_proposed_again(generator, request_for):
    from kbtui.domain.candidate import source_sha

    request = request_for("softmax", source=SOURCE, limit=1, seen=frozenset({source_sha(BETTER)}))

    assert generator.propose(request) == ()


def test_a_rejected_reply_goes_into_the_next_prompt(fake, generator, asked):
    fake.replies[:] = ["I would rather not.", f"```python\n{BETTER}```"]

    (proposal,) = generator.propose(asked)

    assert proposal.source == BETTER
    assert "could not be used" not in fake.requests[0]["messages"][0]["content"]
    assert "could not be used: the reply holds no Python code" in fake.requests[1]["messages"][0]["content"]


@pytest.mark.parametrize("fault", [Fault.ERROR_500, Fault.CUT])
def test_a_passing_failure_is_tried_again(fake, generator, asked, fault):
    fake.faults[:] = [fault]

    (proposal,) = generator.propose(asked)

    assert proposal.source == BETTER
    assert len(fake.requests) == 2


@pytest.mark.parametrize(("fault", "word"), [(Fault.ERROR_500, "out of memory"), (Fault.CUT, "broke")])
def test_a_lasting_failure_is_told_after_three_tries(fake, generator, asked, fault, word):
    fake.faults[:] = [fault] * 9

    with pytest.raises(DeviceError) as told:
        generator.propose(asked)

    assert word in str(told.value)
    assert "\n" not in str(told.value)
    assert len(fake.requests) == 3


def test_a_model_that_is_not_pulled_is_told_with_the_command(fake, asked):
    generator = LlmGenerator("other:1b", chat=OllamaChat(fake.host, QUICK))

    with pytest.raises(UsageError, match=r"model 'other:1b' is not pulled .*; run `ollama pull other:1b`"):
        generator.propose(asked)
    assert len(fake.requests) == 1


def test_an_absent_server_is_told_in_one_line(asked):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        host = f"http://127.0.0.1:{taken.getsockname()[1]}"
        generator = LlmGenerator("coder:7b", chat=OllamaChat(host, QUICK))

        with pytest.raises(DeviceError, match=r"no Ollama server answers at .*; start it with `ollama serve`"):
            generator.propose(asked)
        assert not reachable(host)
        with pytest.raises(DeviceError, match="no Ollama server"):
            list_models(host)


def test_the_models_are_listed(fake):
    fake.models = ("b:1b", "a:7b")

    assert list_models(fake.host) == ("a:7b", "b:1b")
    assert reachable(fake.host)


@pytest.mark.parametrize("fault", [Fault.ENDLESS, Fault.SILENT])
def test_a_stop_ends_a_reply_at_once(fake, generator, asked, fault):
    fake.faults[:] = [fault]
    stopper = threading.Thread(target=lambda: fake.streaming.wait(5) and generator.stop())
    stopper.start()
    started = time.monotonic()

    assert generator.propose(asked) == ()

    stopper.join()
    assert time.monotonic() - started < 3.0


def test_a_reply_that_never_ends_is_cut_at_the_time_allowed(fake, asked):
    fake.faults[:] = [Fault.ENDLESS]
    generator = LlmGenerator("coder:7b", chat=OllamaChat(fake.host, Timeouts(2.0, 5.0, 0.3)))

    (proposal,) = generator.propose(asked)

    assert proposal.source == BETTER
    assert "the reply ended early (timeout)" in proposal.notes


def test_silence_is_told(fake, asked, monkeypatch):
    monkeypatch.setattr("kbtui.generation.llm._TRIES", 1)
    fake.faults[:] = [Fault.SILENT]
    generator = LlmGenerator("coder:7b", chat=OllamaChat(fake.host, Timeouts(2.0, 0.2, 10.0)))

    with pytest.raises(DeviceError, match=r"was silent for 0\.2 s"):
        generator.propose(asked)
