"""A whole search with a real language model whose server is killed and restarted in the middle; nothing may be lost.

    python benchmarks/llm_outages.py PROBLEM --model NAME --down CMD --up CMD [--at 240,540] [--for 45]
        --workspace DIR --out FILE.json --transcript FILE.txt [-- further options of kbtui run]

``kbtui run --headless`` searches; at each of those seconds ``--down`` is run, and so many seconds later ``--up``. The
transcript is what the run said, stamped, with those commands among it. Checked at the end: what the ledger held at each
kill is still there as it was, its numbers have no gap, every kept prompt and reply reads back, the repository is whole,
and the model was asked again after the last restart. Effects: processes, the shell commands given, writes both files.
"""

import argparse
import collections
import json
import platform
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

sys.path.insert(0, str(Path(__file__).parents[1]))

from kbtui.commands.where import open_reader, pick_run
from kbtui.domain.codec import envelope_to_plain
from kbtui.domain.event import CandidateAdmitted, ProposalsMade
from kbtui.errors import KbtuiError
from kbtui.scheduler.state import RunState, Tried

Row = dict[str, Any]


@dataclass(slots=True)
class Transcript:
    """Lines with the minutes and seconds since the start, to a file and to stdout."""

    file: TextIO
    began: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def say(self, line: str) -> None:
        with self._lock:
            seconds = int(time.monotonic() - self.began)
            stamped = f"{seconds // 60:02}:{seconds % 60:02} {line.rstrip()}"
            print(stamped, file=self.file, flush=True)
            print(stamped, flush=True)


def events_of(workspace: Path) -> list[Row]:
    """The ledger of the workspace's latest run; nothing before there is one."""
    try:
        with open_reader(workspace) as reader:
            return [envelope_to_plain(e) for e in reader.envelopes(pick_run(reader, None))]
    except KbtuiError:
        return []


def outages(options: argparse.Namespace, transcript: Transcript, over: threading.Event) -> list[Row]:
    """Bring the server down and up again at the seconds asked; what the ledger held each time."""
    found = []
    for at_s in (float(text) for text in options.at.split(",")):
        if over.wait(max(0.0, at_s - (time.monotonic() - transcript.began))):
            break
        before = events_of(options.workspace)
        transcript.say(f"=== the server is killed: {options.down}; the ledger holds {len(before)} events")
        subprocess.run(options.down, shell=True, check=False)
        over.wait(options.down_for)
        subprocess.run(options.up, shell=True, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        transcript.say(f"=== the server is started again: {options.up}; {len(events_of(options.workspace))} events")
        found.append({"at_s": at_s, "down_s": options.down_for, "events": before})
    return found


def search(options: argparse.Namespace, transcript: Transcript) -> tuple[int, list[Row]]:
    """The run's exit code and the outages it lived through."""
    command = [sys.executable, "-m", "kbtui", "run", options.problem, "--headless", "--model", options.model,
               "-w", str(options.workspace), *options.more]  # fmt: skip
    transcript.say(f"$ {' '.join(['kbtui', *command[3:]])}")
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    over, lived = threading.Event(), []
    killer = threading.Thread(target=lambda: lived.extend(outages(options, transcript, over)))
    killer.start()
    assert run.stdout is not None
    for line in run.stdout:
        transcript.say(line)
    code = run.wait()
    over.set()
    killer.join()
    transcript.say(f"=== the run ended with exit code {code}")
    return code, lived


def faults_of(workspace: Path, code: int, lived: list[Row]) -> list[str]:
    """What was lost, or did not go on."""
    events = events_of(workspace)
    found = [] if code in (0, 1) else [f"exit code {code}"]
    if [e["seq"] for e in events] != list(range(len(events))):
        found.append("the events' numbers have a gap")
    for outage in lived:
        if events[: len(outage["events"])] != outage["events"]:
            found.append(f"what the ledger held at {outage['at_s']} s is not there as it was")
    if not lived or not any(_is_llms(e) and not e["event"]["failed"] for e in events[len(lived[-1]["events"]) :]):
        found.append("the model was not asked with success after the last restart")
    git = ["git", "--git-dir", str(workspace / "kernels.git"), "fsck", "--strict", "--no-dangling"]
    if (said := subprocess.run(git, capture_output=True, text=True)).returncode:
        found.append(f"git fsck: {said.stderr.strip()[:300]}")
    return found + unreadable(workspace)


def _is_llms(event: Row) -> bool:
    return bool(event["event"]["type"] == ProposalsMade.__name__ and event["event"]["generator"] == "llm")


def unreadable(workspace: Path) -> list[str]:
    """Candidates of the model whose prompt or reply does not read back."""
    with open_reader(workspace) as reader:
        run = pick_run(reader, None)
        lost = []
        for tried in reader.state(run).tried.values():
            if tried.candidate.origin.generator == "llm":
                kept = {ref.name: ref for ref in reader.artifacts(run, tried.candidate.id)}
                if not all(reader.artifact(kept[n].sha256) for n in ("prompt.md", "reply.txt") if n in kept):
                    lost.append(f"{tried.candidate.id}: its prompt or reply is empty")
                if not {"prompt.md", "reply.txt"} <= kept.keys():
                    lost.append(f"{tried.candidate.id}: its prompt or reply is missing")
    return lost


def verdict_of(tried: Tried) -> str:
    """How far the gate let it, in the words of its last rung."""
    last = tried.last
    if last is None:
        return "not judged when the run ended"
    verdict = last.outcome.verdict
    return f"{verdict.kind}: {verdict.reason}" if not verdict.ok else f"verified at rung {last.rung}: {last.decision}"


def told(state: RunState, events: list[Row]) -> Row:
    by: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for tried in state.tried.values():
        by[tried.candidate.origin.generator][verdict_of(tried)] += 1
    mine = [t for t in state.tried.values() if t.candidate.origin.generator == "llm"]
    asked = [e for e in events if _is_llms(e)]
    return {
        "events": len(events),
        "kinds": dict(collections.Counter(e["event"]["type"] for e in events)),
        "candidates": sum(e["event"]["type"] == CandidateAdmitted.__name__ for e in events),
        "verdicts_by_generator": {name: dict(found.most_common()) for name, found in by.items()},
        "llm_asked": [
            {k: e["event"][k] for k in ("parent", "n_admitted", "n_duplicate", "tokens", "failed", "note")}
            | {"at_s": round(e["wall_s"])}
            for e in asked
        ],
        "llm_candidates": [
            {"candidate": t.candidate.id, "parent": t.candidate.parents[:1], "verdict": verdict_of(t),
             "detail": t.last.outcome.verdict.detail[:200] if t.last else "",
             "decision": t.last.reason if t.last else "",
             "score": t.score, "notes": list(t.candidate.notes)}
            for t in mine
        ],
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem")
    parser.add_argument("--model", required=True)
    parser.add_argument("--down", required=True, help="shell command that kills the server")
    parser.add_argument("--up", required=True, help="shell command that starts it again, and returns")
    parser.add_argument("--at", default="240,540", help="seconds after the start at which it is killed")
    parser.add_argument("--for", dest="down_for", type=float, default=45.0, help="seconds until it is started again")
    parser.add_argument("--workspace", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--transcript", type=Path, required=True)
    parser.add_argument("--server", default="", help="what the server and the model are, for the record")
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options = parser.parse_args(sys.argv[1:at], argparse.Namespace(more=sys.argv[at + 1 :]))
    with options.transcript.open("w") as file:
        code, lived = search(options, Transcript(file))
    found = faults_of(options.workspace, code, lived)
    with open_reader(options.workspace) as reader:
        state = reader.state(pick_run(reader, None))
    report = {
        "command": f"python {' '.join(sys.argv)}",
        "date": time.strftime("%Y-%m-%d %H:%MZ", time.gmtime()),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "server": options.server,
        "exit_code": code,
        "outages": [outage | {"events": len(outage["events"])} for outage in lived],
        "faults": found,
        **told(state, events_of(options.workspace)),
    }
    options.out.write_text(json.dumps(report, indent=1) + "\n")
    print("nothing was lost" if not found else "\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
