import json
import subprocess

from hypothesis import given
from hypothesis import strategies as st

from kbtui.domain.candidate import ArtifactRef
from kbtui.domain.event import CommandAccepted, CommandKind, EndReason, Envelope, RunEnded
from store.message import envelope_json, envelope_of_json, event_message, one_line, parse_event_message

AT = "2026-11-30T09:00:00.000+00:00"
anything = st.text(st.characters(), max_size=200)


def envelope(text: str) -> Envelope:
    return Envelope(3, AT, 1.5, 0.25, CommandAccepted(1, CommandKind.SUBMIT, text, text))


@given(argument=anything, subject=anything, name=anything)
def test_event_comes_back_from_its_message_whatever_text_it_carries(argument, subject, name):
    given_envelope = envelope(argument)
    body = envelope_json(given_envelope)
    refs = (ArtifactRef("samples.csv", "a" * 64), ArtifactRef(name, "b" * 64))
    message = event_message(subject or "x", "softmax-1", given_envelope, body, refs)
    stored = message.encode().decode()
    assert parse_event_message(stored)[:2] == (given_envelope, body)
    assert [ref.sha256 for ref in parse_event_message(stored)[2]] == ["a" * 64, "b" * 64]


@given(text=anything)
def test_envelope_is_json_with_a_line_for_each_field(text):
    body = envelope_json(envelope(text))
    assert json.loads(body)["event"]["argument"] == text
    assert len(body.splitlines()) == 2 + len(json.loads(body)["event"])
    assert envelope_of_json(body) == envelope(text)


@given(text=anything, limit=st.integers(5, 300))
def test_one_line_is_one_line_within_its_limit(text, limit):
    line = one_line(text, limit)
    assert len(line) <= limit
    assert len(line.splitlines()) <= 1
    assert "\0" not in line


def test_git_reads_the_trailers():
    ended = Envelope(9, AT, 1.0, 1.0, RunEnded(EndReason.BUDGET, "done"))
    message = event_message("end: budget", "x-1", ended, envelope_json(ended), (ArtifactRef("a b", "c" * 64),))
    done = subprocess.run(["git", "interpret-trailers", "--parse"], input=message, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["Event: RunEnded", f"Artifact: {'c' * 64} a b", "Run: x-1"]
