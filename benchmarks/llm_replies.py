"""Replies of a real model to this project's prompts: collected once, then judged without the model.

    python benchmarks/llm_replies.py collect --model NAME --out DIR --workspace RUNS [--seconds 1800] RUN...
    python benchmarks/llm_replies.py judge DIR [--device model:a100] [--out FILE]

``collect`` takes the prompt of every candidate of finished runs that was measured and diagnosed, fastest first, asks
the model (a seed a question, hotter when asked again) and keeps one JSON file a reply: prompt, reply, how it ended,
tokens, seconds. It goes on where it stopped. ``judge`` reads them back and says how many hold a kernel, how many of
those compile and pass the gate, as the model wrote them and as mended, with the reasons of the rest.
"""

import argparse
import collections
import json
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from hints import load_hints
from kbtui.commands.verify import whole_gate
from kbtui.commands.where import open_reader
from kbtui.domain.proposal import Phase, ProposalRequest
from kbtui.engine.requests import proposal_request
from kbtui.engine.session import hint_chooser
from kbtui.errors import UsageError
from kbtui.evaluation.devices import open_device
from kbtui.generation.chat import Timeouts
from kbtui.generation.fitting import tokens_of
from kbtui.generation.llm import HOTTER, TEMPERATURE
from kbtui.generation.ollama_chat import OllamaChat
from kbtui.generation.prompt import build_prompt
from kbtui.generation.repair import Mended, repair
from kbtui.generation.signature import input_names
from kbtui.kernel_file import check_kernel
from kbtui.problems import load_problem
from kbtui.scheduler.actions import Propose
from kbtui.scheduler.state import RunState

MOST_REPLY_TOKENS = 1600
CONTEXT_TOKENS = 8192
#: What a reader without a parser would take: the first fenced block, as it stands.
_ASKED_ABOUT = re.compile(r"^## Kernel to improve\n.*?^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_FIRST_BLOCK = re.compile(r"```(?:python)?[ \t]*\n(.*?)```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Question:
    """One prompt: of a run's candidate, with the number of the time it is asked."""

    run: str
    problem: str
    candidate: str
    number: int
    prompt: str

    @property
    def file(self) -> str:
        return f"{self.problem}-{self.candidate}-{self.number}.json"


def questions(workspace: Path, runs: list[str], times: range, at_once: int = 1) -> Iterator[Question]:
    """Runs in turn, their measured candidates fastest first, ``at_once`` of them at each of the ``times``.

    Then the next ones: a server that still holds a prompt need not read it again.
    """
    asked = [list(_of_run(workspace, run)) for run in runs]
    turns = [
        (run, *prompts[place])
        for place in range(max(map(len, asked), default=0))
        for run, prompts in zip(runs, asked, strict=True)
        if place < len(prompts)
    ]
    for first in range(0, len(turns), at_once):
        for number in times:
            for run, problem, candidate, prompt in turns[first : first + at_once]:
                yield Question(run, problem, candidate, number, prompt)


def _of_run(workspace: Path, run: str) -> Iterator[tuple[str, str, str]]:
    for candidate, request in requests_of(workspace, run):
        yield request.problem.spec.name, candidate, build_prompt(request)


def requests_of(workspace: Path, run: str) -> Iterator[tuple[str, ProposalRequest]]:
    """What a generator was to be told of each candidate that was measured and diagnosed, fastest first."""
    reader = open_reader(workspace)
    state: RunState = reader.state(run)
    assert state.started is not None
    problem = load_problem(state.started.problem_path)
    measured = [t for t in state.tried.values() if t.score and any(r.outcome.diagnosis for r in t.results.values())]
    for tried in sorted(measured, key=lambda t: -(t.score or 0.0)):
        action = Propose("llm", tried.candidate.id, Phase.NARROW, 1, "asked by hand")
        hints = hint_chooser(problem, load_hints())(state, action)
        source_of: Callable[[str], str] = lambda c: reader.source(state.tried[c].commit)  # noqa: E731
        yield tried.candidate.id, proposal_request(state, action, problem, source_of, hints)


def collect(options: argparse.Namespace) -> None:
    options.out.mkdir(parents=True, exist_ok=True)
    chat, end = OllamaChat(options.host, Timeouts(5.0, 1200.0, 1800.0)), time.monotonic() + options.seconds

    def ask(place: int, question: Question) -> None:
        if time.monotonic() < end and not (options.out / question.file).exists():
            _ask(chat, options, place, question)

    with ThreadPoolExecutor(options.at_once) as pool:
        every = enumerate(
            questions(options.workspace, options.runs, range(options.first, options.times), options.at_once)
        )
        fitting = [(n, q) for n, q in every if tokens_of(q.prompt) + MOST_REPLY_TOKENS <= CONTEXT_TOKENS]
        for done in as_completed([pool.submit(ask, *asked) for asked in fitting]):
            done.result()


def _ask(chat: OllamaChat, options: argparse.Namespace, place: int, question: Question) -> None:
    """Ask and keep the reply, as one file."""
    settings = {"seed": place, "temperature": HOTTER if question.number else TEMPERATURE,
                "num_ctx": CONTEXT_TOKENS, "num_predict": MOST_REPLY_TOKENS}  # fmt: skip
    reply = chat.reply(options.model, question.prompt, settings, threading.Event())
    kept = {
        "model": options.name or options.model,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "problem": question.problem,
        "run": question.run,
        "candidate": question.candidate,
        "options": settings,
        "prompt": question.prompt,
        "reply": reply.text,
        "ended": reply.ended,
        "reply_tokens": reply.reply_tokens,
        "wall_s": round(reply.wall_s, 1),
    }
    (options.out / question.file).write_text(json.dumps(kept, indent=1) + "\n")
    print(f"{question.file}: {reply.ended}, {len(reply.text)} characters, {reply.wall_s:.0f} s", flush=True)


def kept_replies(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """Name and content of every reply; ``questions.json`` beside them is none."""
    return [(path.name, json.loads(path.read_text())) for path in sorted(folder.glob("*-*.json"))]


def judge(options: argparse.Namespace) -> None:
    """A table on stdout, every reply's verdicts into ``--out``."""
    kept = kept_replies(options.dir)
    found: list[dict[str, Any]] = []
    for name in sorted({k["problem"] for _, k in kept}):
        found += _judge_problem(name, [(n, k) for n, k in kept if k["problem"] == name], options.device)
    report = {
        "command": " ".join(sys.argv),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "device": options.device,
        "counts": counts(found),
        "replies": found,
    }
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report["counts"], indent=1))


def counts(found: list[dict[str, Any]]) -> dict[str, Any]:
    """How far replies got, as written and as mended."""
    return {
        "replies": len(found),
        "hold a kernel": sum(f["parsed"] for f in found),
        "mended": sum(bool(f["notes"]) for f in found),
        **{
            f"{how}: {what}": sum(f[how]["reached"] >= level for f in found)
            for how in ("as written", "mended")
            for level, what in ((1, "well formed"), (2, "compiled"), (3, "correct"))
        },
        "reasons as mended": dict(collections.Counter(f["mended"]["reason"] for f in found).most_common()),
    }


def _judge_problem(name: str, kept: list[tuple[str, dict[str, Any]]], device_key: str) -> list[dict[str, Any]]:
    problem = load_problem(name)
    with tempfile.TemporaryDirectory(prefix="kbtui-replies-") as root:
        device = open_device(device_key, Path(root))
        try:
            device.open(problem)
            return [_judged(file, k, problem, device) for file, k in kept]
        finally:
            device.close()


def _judged(file: str, kept: dict[str, Any], problem: Any, device: Any) -> dict[str, Any]:
    written = _FIRST_BLOCK.search(kept["reply"])
    parent = _ASKED_ABOUT.search(kept["prompt"])
    made = repair(kept["reply"], input_names(problem, None), parent[1] if parent else None)
    row = {
        "file": file,
        "parsed": isinstance(made, Mended),
        "notes": list(made.notes) if isinstance(made, Mended) else [],
        "as written": _reached(written[1] if written else None, device),
        "mended": _reached(made.source if isinstance(made, Mended) else None, device),
    }
    print(f"{file}: {row['as written']['reason']} -> {row['mended']['reason']}", flush=True)
    return row


def _reached(source: str | None, device: Any) -> dict[str, Any]:
    """0 no kernel, 1 well formed, 2 compiled, 3 correct; with the gate's reason."""
    if source is None:
        return {"reached": 0, "reason": "no_kernel", "detail": ""}
    try:
        check_kernel(source, "the reply")
    except UsageError as error:
        return {"reached": 0, "reason": "malformed", "detail": str(error)[:200]}
    verdict = whole_gate(device, source, 0)
    reached = 3 if verdict.ok else 2 if verdict.stage > 0 else 1
    return {"reached": reached, "reason": str(verdict.reason or verdict.kind), "detail": verdict.detail[:200]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    collecting = commands.add_parser("collect")
    collecting.add_argument("--model", required=True)
    collecting.add_argument("--name", help="what to call the model in the files")
    collecting.add_argument("--host")
    collecting.add_argument("--out", type=Path, required=True)
    collecting.add_argument("--workspace", type=Path, required=True)
    collecting.add_argument("--times", type=int, default=3, help="how often each prompt is asked")
    collecting.add_argument("--first", type=int, default=0, help="the number of times asked at which to begin")
    collecting.add_argument("--at-once", type=int, default=1, help="questions asked at the same time")
    collecting.add_argument("--seconds", type=float, default=1800.0)
    collecting.add_argument("runs", nargs="+")
    collecting.set_defaults(do=collect)
    judging = commands.add_parser("judge")
    judging.add_argument("dir", type=Path)
    judging.add_argument("--device", default="model:a100")
    judging.add_argument("--out", type=Path)
    judging.set_defaults(do=judge)
    options = parser.parse_args()
    options.do(options)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
