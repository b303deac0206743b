"""The language-model generator over a real HTTP server of our own: replies, faults, stops, clear words."""

import socket
import threading
import time

import pytest

from kbtui.errors import DeviceError, UsageError
from kbtui.generation.chat import Timeouts
from kbtui.generation.llm import LlmGenerator
from kbtui.generation.ollama_chat import OllamaChat
from kbtui.generation.openai_chat import KEY_VARIABLE, OpenAiChat
from kbtui.problems import load_problem
from tests.fakes.ollama_server import FakeOllama, Fault, serve

SOURCE = load_problem("softmax").kernel_source
BETTER = SOURCE.replace("BLOCK=4096", "BLOCK=8192")
QUICK = Timeouts(connect_s=2.0, silence_s=5.0, reply_s=10.0)


@pytest.fixture
def fake():
    with serve(FakeOllama(replies=[f"Here:\n```python\n{BETTER}```\n"])) as server:
        yield server


@pytest.fixture(params=["ollama", "openai"])
def chat(fake, request):
    return OllamaChat(fake.host, QUICK) if request.param == "ollama" else OpenAiChat(fake.url, QUICK)


@pytest.fixture
def generator(fake, chat, monkeypatch):
    monkeypatch.setattr("kbtui.generation.llm._BACK_OFF_S", 0.01)
    return LlmGenerator("coder:7b", chat)


@pytest.fixture
def ollama(fake, monkeypatch):
    monkeypatch.setattr("kbtui.generation.llm._BACK_OFF_S", 0.01)
    return LlmGenerator("coder:7b", OllamaChat(fake.host, QUICK))


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


def test_the_seed_and_a_context_that_holds_the_prompt_are_sent(fake, ollama, request_for):
    ollama.propose(request_for("softmax", source=SOURCE, limit=1, seed=5))

    options = fake.requests[0]["options"]
    assert options["seed"] == 5000
    assert options["num_ctx"] >= len(fake.requests[0]["messages"][0]["content"]) / 4 + options["num_predict"]


def test_a_prompt_is_made_to_fit_the_models_context(fake, ollama, request_for):
    fake.context = 2500

    (proposal,) = ollama.propose(request_for("softmax", source=SOURCE, limit=1))

    options = fake.requests[0]["options"]
    assert options["num_ctx"] == 2500
    assert 1024 <= options["num_predict"] < 2500
    assert proposal.source == BETTER


def test_a_model_too_small_for_the_prompt_is_told_with_both_numbers(fake, ollama, asked):
    fake.context = 1500

    with pytest.raises(UsageError, match=r"coder:7b holds 1500 tokens, .* needs about \d{4}; name a model"):
        ollama.propose(asked)
    assert fake.requests == []


@pytest.mark.parametrize("read", [4, 1_000_000])
def test_a_prompt_that_the_server_cut_is_told(fake, generator, asked, read):
    fake.read = lambda prompt: read

    (proposal,) = generator.propose(asked)

    assert any(f"the server read {read} tokens" in note for note in proposal.notes)


def test_a_reply_cut_at_its_length_is_told_and_the_next_prompt_says_so(fake, generator, asked):
    fake.replies[:] = ["```python\nimport triton\ndef kernel_function(x", f"```python\n{BETTER}```"]
    fake.ended = "length"

    (proposal,) = generator.propose(asked)

    assert "cut off" in fake.requests[1]["messages"][0]["content"]
    assert "the reply ended early (length)" in proposal.notes


def test_replies_are_asked_at_the_same_time(fake, generator, request_for):
    fake.replies[:] = [f"```python\n{BETTER}```", f"```python\n{SOURCE.replace('BLOCK=4096', 'BLOCK=2048')}```"]
    fake.meet = threading.Barrier(2)

    proposals = generator.propose(request_for("softmax", source=SOURCE, limit=2))

    assert len({p.source for p in proposals}) == 2
    assert len(fake.requests) == 2


def test_what_a_model_thinks_aloud_is_kept_and_not_taken_for_its_answer(fake, generator, asked):
    fake.thought = f"First try:\n```python\n{SOURCE.replace('BLOCK=4096', 'BLOCK=64')}```"

    (proposal,) = generator.propose(asked)

    assert proposal.source == BETTER
    reply = next(a.content.decode() for a in proposal.attachments if a.name == "reply.txt")
    assert reply.startswith("<think>First try:")


def test_every_reply_is_accounted_for_and_kept(fake, generator, request_for):
    fake.replies[:] = ["I would rather not."]

    assert generator.propose(request_for("softmax", source=SOURCE, limit=2)) == ()

    receipt = generator.receipt()
    prompts = [r["messages"][0]["content"] for r in fake.requests]
    assert receipt.tokens == sum(len(p) // 4 + 7 for p in prompts)
    kept = {a.name: a.content.decode() for a in receipt.attachments}
    assert [kept[f"prompt-{n}.md"] for n in (1, 2, 3)] == prompts
    assert [kept[f"reply-{n}.txt"] for n in (1, 2, 3)] == ["I would rather not."] * 3
    assert len([n for n in receipt.notes if "holds no Python code" in n]) == 3
    assert not receipt.exhausted


def test_a_receipt_is_of_the_last_answer_only(fake, generator, asked):
    generator.propose(asked)
    first = generator.receipt().tokens
    fake.faults[:] = [Fault.ERROR_500] * 9
    with pytest.raises(DeviceError):
        generator.propose(asked)

    assert first > 0
    assert generator.receipt().tokens == 0


def test_a_reply_that_says_what_was_said_before_is_no_candidate(fake, generator, asked, request_for):
    assert generator.propose(asked)
    fake.replies[:] = [f"```python\n# a comment of its own\n{BETTER}\n```"]

    assert generator.propose(request_for("softmax", source=SOURCE, limit=1, seed=2)) == ()

    assert any("said before" in note for note in generator.receipt().notes)


def test_a_reply_that_only_repeats_its_parent_is_no_candidate(fake, generator, asked):
    fake.replies[:] = [f"```python\n{SOURCE}\n# as fast as can be\n```"]

    assert generator.propose(asked) == ()


def test_a_model_that_repeats_itself_is_asked_once_more_and_hotter(fake, ollama, asked):
    fake.replies = [f"```python\n{SOURCE}```", f"```python\n{BETTER}```"]

    proposed = ollama.propose(asked)

    assert [p.source for p in proposed] == [BETTER]
    first, second = (r["options"]["temperature"] for r in fake.requests)
    assert first < second


def test_a_model_on_the_gpu_that_times_leaves_it_after_an_answer(fake, asked):
    fake.vram = 1 << 30
    generator = LlmGenerator("coder:7b", OllamaChat(fake.host, QUICK), shares_gpu=True)

    assert generator.propose(asked)

    assert fake.vram == 0


def test_a_model_that_will_not_leave_the_gpu_is_told_and_not_awaited_for_ever(fake, asked, monkeypatch):
    monkeypatch.setattr("kbtui.generation.llm.REST_S", 0.3)
    fake.vram, fake.stays = 1 << 30, True
    generator = LlmGenerator("coder:7b", OllamaChat(fake.host, QUICK), shares_gpu=True)

    assert generator.propose(asked)

    assert any("still holds the GPU" in note for note in generator.receipt().notes)


def test_a_model_elsewhere_stays_loaded(fake, asked):
    fake.vram = 1 << 30

    assert LlmGenerator("coder:7b", OllamaChat(fake.host, QUICK)).propose(asked)

    assert fake.vram == 1 << 30


def test_a_stop_hangs_up_so_that_the_server_stops_computing(fake, generator, asked):
    fake.faults[:] = [Fault.ENDLESS]
    stopper = threading.Thread(target=lambda: fake.streaming.wait(5) and generator.stop())
    stopper.start()

    generator.propose(asked)

    stopper.join()
    assert fake.hung_up.wait(5)


def test_a_server_without_memory_is_told_at_once(fake, generator, asked):
    fake.faults[:] = [Fault.NO_MEMORY] * 9

    with pytest.raises(DeviceError, match="more system memory"):
        generator.propose(asked)


def test_a_key_is_sent_where_one_is_set_and_asked_for_where_not(fake, asked, monkeypatch):
    fake.key = "secret"
    generator = LlmGenerator("coder:7b", OpenAiChat(fake.url, QUICK))
    with pytest.raises(UsageError, match=KEY_VARIABLE):
        generator.propose(asked)

    monkeypatch.setenv(KEY_VARIABLE, "secret")
    assert generator.propose(asked)


def test_several_replies_are_asked_with_different_seeds_and_twins_dropped(fake, generator, request_for):
    proposals = generator.propose(request_for("softmax", source=SOURCE, limit=5))

    assert len(proposals) == 1  # the server gives the same reply each time
    assert len({(r.get("options") or r)["seed"] for r in fake.requests}) == len(fake.requests) == 3


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


@pytest.mark.parametrize(("fault", "word"), [(Fault.ERROR_500, "it broke"), (Fault.CUT, "broke")])
def test_a_lasting_failure_is_told_after_three_tries(fake, generator, asked, fault, word):
    fake.faults[:] = [fault] * 9

    with pytest.raises(DeviceError) as told:
        generator.propose(asked)

    assert word in str(told.value)
    assert "\n" not in str(told.value)
    assert len(fake.requests) == 3


def test_a_model_that_is_not_pulled_is_told_with_the_command(fake, asked):
    generator = LlmGenerator("other:1b", OllamaChat(fake.host, QUICK))

    with pytest.raises(UsageError, match=r"model 'other:1b' is not pulled .*; run `ollama pull other:1b`"):
        generator.propose(asked)
    assert len(fake.requests) == 1


def test_an_absent_server_is_told_in_one_line(asked):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        host = f"http://127.0.0.1:{taken.getsockname()[1]}"
        generator = LlmGenerator("coder:7b", OllamaChat(host, QUICK))

        with pytest.raises(DeviceError, match=r"no Ollama server answers at .*; start it with `ollama serve`"):
            generator.propose(asked)
        assert not OllamaChat(host, QUICK).reachable()
        with pytest.raises(DeviceError, match="no Ollama server"):
            OllamaChat(host, QUICK).list_models()
        with pytest.raises(DeviceError, match=r"no server answers at .*; start it, or correct --llm-url"):
            OpenAiChat(host, QUICK).list_models()


def test_an_absent_server_is_told_by_the_host_that_the_environment_names(asked, monkeypatch):
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")

    with pytest.raises(DeviceError, match=r"answers at http://127\.0\.0\.1:9"):
        LlmGenerator("coder:7b", OllamaChat(None, QUICK)).propose(asked)


def test_the_models_are_listed(fake, chat):
    fake.models = ("b:1b", "a:7b")

    assert chat.list_models() == ("a:7b", "b:1b")


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
    generator = LlmGenerator("coder:7b", OllamaChat(fake.host, Timeouts(2.0, 5.0, 0.3)))

    (proposal,) = generator.propose(asked)

    assert proposal.source == BETTER
    assert "the reply ended early (timeout)" in proposal.notes


def test_silence_is_told(fake, asked, monkeypatch):
    monkeypatch.setattr("kbtui.generation.llm._TRIES", 1)
    fake.faults[:] = [Fault.SILENT]
    generator = LlmGenerator("coder:7b", OllamaChat(fake.host, Timeouts(2.0, 0.2, 10.0)))

    with pytest.raises(DeviceError, match=r"was silent for 0\.2 s"):
        generator.propose(asked)
