"""An event as the message of a git commit, and back: a subject for people, JSON for programs, trailers for git.

The JSON is one object spread over lines, one for each field of the event, so that ``git show`` can be read and a
long outcome stays on one line::

    r2 c0031 online softmax, 2 rows a program: 1.41×, promoted: +6 % over c0012

    {"seq":41,"at":"2026-11-30T09:12:44.120+00:00","wall_s":61.2,"gpu_s":12.9,"event":{
    "type":"RungCompleted",
    "candidate":"c0031",
    ...
    }}

    Event: RungCompleted
    Candidate: c0031
    Run: softmax-7
"""

import json
import re
from typing import Any

from kbtui.domain.candidate import ArtifactRef
from kbtui.domain.codec import envelope_from_plain, envelope_to_plain
from kbtui.domain.event import CandidateAdmitted, Envelope, Event, RungCompleted

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_MAX_SUBJECT = 200


def one_line(text: str, limit: int = _MAX_SUBJECT) -> str:
    """Text that can stand in a subject or trailer: one line, no control characters or lone surrogates."""
    line = _CONTROL.sub(" ", text).strip()
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def envelope_json(envelope: Envelope) -> str:
    """The envelope as JSON, one line for each field of its event; ASCII only where UTF-8 could not hold it."""
    plain = envelope_to_plain(envelope)
    event = ",\n".join(f"{_json(name)}:{_json(value)}" for name, value in plain.pop("event").items())
    head = ",".join(f"{_json(name)}:{_json(value)}" for name, value in plain.items())
    return f'{{{head},"event":{{\n{event}\n}}}}'


def envelope_of_json(text: str) -> Envelope:
    """Raises ValueError, KeyError or TypeError where the text is not an envelope this version knows."""
    return envelope_from_plain(json.loads(text))


def candidate_of(event: Event) -> str | None:
    """Id of the candidate an event is about, None where it is about none."""
    match event:
        case CandidateAdmitted():
            return event.candidate.id
        case RungCompleted():
            return event.candidate
        case _:
            return None


def event_message(subject: str, run: str, envelope: Envelope, body: str, artifacts: tuple[ArtifactRef, ...]) -> str:
    """``body``: the envelope's JSON, see ``envelope_json``."""
    candidate = candidate_of(envelope.event)
    trailers = [("Event", type(envelope.event).__name__)]
    trailers += [("Candidate", candidate)] if candidate else []
    trailers += [("Artifact", f"{ref.sha256} {one_line(ref.name)}") for ref in artifacts]
    trailers += [("Run", run)]
    return f"{one_line(subject)}\n\n{body}\n\n{trailer_block(trailers)}"


def parse_event_message(message: str) -> tuple[Envelope, str, tuple[ArtifactRef, ...]]:
    """The envelope, its JSON as written, and the artifacts named.

    Raises ValueError, KeyError or TypeError where the message is not an event's.
    """
    start, end = message.index('\n\n{"seq":') + 2, message.index("\n}}\n\n") + 3
    trailers = (line.partition(": ") for line in message[end:].strip().splitlines())
    named = (value.partition(" ") for key, _, value in trailers if key == "Artifact")
    body = message[start:end]
    return envelope_of_json(body), body, tuple(ArtifactRef(name, sha) for sha, _, name in named)


def candidate_message(candidate: str, subject: str, run: str, trailers: tuple[tuple[str, str], ...]) -> str:
    """Subject beginning with the candidate's id, so that ``git show 'runs/x^{/^c0031 }'`` finds it, and trailers."""
    line = one_line(subject)
    line = line if line.startswith(candidate) else f"{candidate} {line}"
    given = {key for key, _ in trailers}
    ours = [(key, value) for key, value in (("Candidate", candidate), ("Run", run)) if key not in given]
    return f"{line}\n\n{trailer_block([*trailers, *ours])}"


def trailer_block(trailers: list[tuple[str, str]]) -> str:
    return "".join(f"{key}: {one_line(value, 1000)}\n" for key, value in trailers if value)


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text if text.isprintable() and _encodable(text) else json.dumps(value, separators=(",", ":"))


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
