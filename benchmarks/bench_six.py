"""The six benchmarks: for each case a search with the embedded generators, then its champion against everything else.

    python benchmarks/bench_six.py --out benchmarks/results/six [--cases softmax,group_conv-8x] [--seconds 45]
                                   [--seed 0] [--limit 540] [--pack FILE.tgz] [--device cuda:0] [--again]

A case is one problem on one shape in one dtype (``benchmarks/six/cases.toml``; ``--list`` shows them and what is
done). Its search runs as ``kbtui run`` with playbook and rewrites alone. Then the champion, the first kernel, the best
playbook draft without search, PyTorch eager, torch.compile in three modes, Liger-Kernel and FlagGems where they are
installed, a plain copy and a plain read of memory take turns, each in a process of its own, three process pairs. At
last the champion is compiled for sm_80 (``--a100`` alone does that for results that lack it, on any machine).

Kept in ``--out``: CASE.json with times, samples' medians, clocks, versions and the kernels themselves, and CASE.bundle,
the search's repository for ``git clone``. A case that is there is not done again; one that was interrupted goes on
where it was, as long as ``--work`` is there. ``--again`` searches nothing: what is kept takes its turns anew, on this
machine as it is now, for all of ``--cases`` (so name those that a call has left); of the old times the record keeps the
champion's. It works in a folder of its own under ``--work``. ``--limit``: seconds after which no case is begun that
would not end in time. ``--pack``: all of ``--out`` and the logs as one file, anew after every case. Exit 0: all cases
asked for are finished; 1: not all.

``docs/results.py`` makes docs/results.md and its plots of what is kept.
"""

import argparse
import signal
import subprocess
import sys
import tarfile
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.six.again import folder_of_its_own, restore
from benchmarks.six.cases import Case, chosen, in_turns, load_cases
from benchmarks.six.hall import Hall
from benchmarks.six.part import Part
from benchmarks.six.places import Places, status
from benchmarks.six.record import read_record, write_record
from benchmarks.six.search import is_over, state_of
from benchmarks.six.stages import a100_of, hall_of, hold_contests, run_case
from kbtui.console import tell
from kbtui.errors import ExitCode, KbtuiError, UsageError
from kbtui.evaluation.baselines import NAMES
from kbtui.evaluation.devices import REPLAY, resolve_auto

DEFAULT_OUT = Path("benchmarks/results/six")


def main(words: list[str] | None = None) -> int:
    try:
        options = parsed(words)
        cases = chosen(load_cases(), options.cases)
        if options.inside:
            hold_contests(options, {case.name: places(options, case) for case in cases})
            return 0
        options.out.mkdir(parents=True, exist_ok=True)
        if options.list:
            print("\n".join(f"{case.name:40} {status(places(options, case))}" for case in cases))
            return 0
        return run_part(options, in_turns(cases))
    except KbtuiError as error:
        tell(f"bench_six: {error}")
        return int(error.exit_code)
    except OSError as error:
        tell(f"bench_six: {error}: what was finished before is kept")
        return int(ExitCode.ENGINE_FAILED)
    except KeyboardInterrupt:
        tell("bench_six: interrupted: what was finished before is kept; call again for the rest")
        return int(ExitCode.INTERRUPTED)


def parsed(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="where results are kept, and looked for")
    parser.add_argument("--work", type=Path, help="workspaces and logs (default: .kbtui/six; outlives the call)")
    parser.add_argument("--cases", type=split, default=(), help="begin of names, with commas; default all")
    parser.add_argument("--seconds", type=float, default=45.0, help="a search's budget")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, help="seconds this call may take")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--pairs", type=int, default=12, help="most pairs a process pair and opponent")
    parser.add_argument("--processes", type=int, default=3, help="fresh process pairs")
    parser.add_argument("--baselines", type=split, default=NAMES, help=f"of {', '.join(NAMES)}")
    parser.add_argument("--unvetted", action="store_true", help="do not vet a case's problem before its search")
    parser.add_argument("--pack", type=Path, help="a .tgz of --out, written after every case")
    parser.add_argument("--list", action="store_true", help="show the cases and what is done, and do nothing")
    parser.add_argument("--a100", action="store_true", help="only compile kept champions for sm_80 that were not yet")
    parser.add_argument("--again", action="store_true", help="measure what is kept anew, out of its bundle")
    parser.add_argument("--no-a100", action="store_true", help="leave that for later")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    options.device = named(options.device)
    default = Path(".kbtui/six") / options.device.replace(":", "-").replace("/", "_")[-60:]
    options.out, options.work = options.out.resolve(), (options.work or default).resolve()
    if options.again:
        options.work = folder_of_its_own(options.work)
    options.command = "python benchmarks/bench_six.py " + " ".join(sys.argv[1:] if words is None else words)
    unknown = [name for name in options.baselines if name not in NAMES]
    if unknown:
        raise UsageError(f"no baseline is named {unknown[0]!r}", f"there are {', '.join(NAMES)}")
    if options.pairs < 1 or options.processes < 1:
        raise UsageError("--pairs and --processes are 1 or more", "leave them out for 12 and 3")
    if options.pack and not (options.pack.name.endswith((".tgz", ".tar.gz")) and options.pack.parent.is_dir()):
        raise UsageError(f"--pack {options.pack} cannot be written", "name a .tgz in a folder that is there")
    return options


def named(device: str) -> str:
    """The device as every process of this call knows it, wherever that process runs."""
    if device.startswith(REPLAY):
        return f"{REPLAY}{Path(device.removeprefix(REPLAY)).resolve()}"
    return resolve_auto() if device == "auto" else device


def split(words: str) -> tuple[str, ...]:
    return tuple(word for word in words.split(",") if word)


def places(options: argparse.Namespace, case: Case) -> Places:
    return Places(options.out, options.work, case)


def run_part(options: argparse.Namespace, cases: tuple[Case, ...]) -> int:
    began, part = time.monotonic(), Part(options.limit, options.seconds)
    todo = [] if options.a100 else [c for c in cases if places(options, c).record.is_file() is options.again]
    hall = hall_of(options, places(options, cases[0]))
    try:
        for case in todo:
            run_one(options, case, part, began, hall)
    finally:
        hall.close()
    if not options.no_a100:
        compile_for_a100(options, [places(options, c) for c in cases], began)
        pack(options)
    tell(f"{time.monotonic() - began:.0f} s: {part.summary()}")
    return 1 if part.failed or part.left else 0


def run_one(options: argparse.Namespace, case: Case, part: Part, began: float, hall: Hall) -> None:
    """One case, if there is time for it."""
    gone_s, where = time.monotonic() - began, places(options, case)
    if not part.has_room(gone_s, options.again or is_over(state_of(where.workspace))):
        part.left.append(case.name)
        return
    try:
        kept = restore(where, options.device) if options.again else None
        run_case(options, where, part, began, hall, kept)
        part.finished.append(case.name)
    except (KbtuiError, OSError) as error:
        tell(f"{case.name}: {error}")
        part.failed.append(case.name)
    pack(options)


def compile_for_a100(options: argparse.Namespace, all_places: list[Places], began: float) -> None:
    """Every kept result that lacks it, from its bundle; as long as there is time."""
    for where in all_places:
        if not where.record.is_file():
            continue
        if options.limit is not None and time.monotonic() - began > options.limit - 20:
            tell("the rest is compiled for sm_80 by another call: --a100")
            return
        try:
            if (record := read_record(where.record)).a100 is None:
                write_record(where.record, replace(record, a100=a100_of(where, record)))
        except (KbtuiError, OSError, subprocess.SubprocessError) as error:
            tell(f"{where.case.name}: not compiled for sm_80: {error}")


def pack(options: argparse.Namespace) -> None:
    if options.pack is None:
        return
    waiting = options.pack.with_name(options.pack.name + ".part")
    with tarfile.open(waiting, "w:gz") as archive:
        for path in sorted((*options.out.glob("*.json"), *options.out.glob("*.bundle"))):
            archive.add(path, path.name)
        for log in sorted(options.work.glob("*/*.log")):
            archive.add(log, f"logs/{log.parent.name}-{log.name}")
    waiting.replace(options.pack)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what runs in processes of its own ends with us
    raise SystemExit(main())
