"""Does the comparison keep its error rates on a real GPU? The same kernel under two names, and planted slow-downs.

    python benchmarks/adjudication.py --device cuda:0 --same 200 --planted 100 --seconds 500 --out FILE.jsonl

Every comparison is between two children that have compared nothing before, as the measuring rung makes it (one process
pair, at most 20 pairs) or, for a planted 1 %, as the profiling rung does without its profile (three process pairs).
Kinds of comparison take turns, so that a run cut short has some of each; a second call adds to FILE what it lacks.
``--summary FILE`` prints the table of what is there, and with ``--docs docs/measurement.md`` writes it there between
its marks. On a small and a large softmax, in float32:

    same        a kernel against itself: ``faster`` is an error
    same, long  the same with a kernel of some 400 us
    planted 2   the other side does 2 % more rows of work: ``faster`` is right
    planted 1   the same with 1 %, in three process pairs

The true ratio of a planted slow-down is not taken from its construction but is the median of all its comparisons.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median, pstdev

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.marked_page import between
from kbtui.commands.profile import on_shape
from kbtui.domain.evaluation import Evaluated, EvaluationRequest, Opponent
from kbtui.domain.measurement import LiveSample
from kbtui.domain.problem import Problem
from kbtui.domain.rung import DEFAULT_LADDER, MEASURE, PROFILE
from kbtui.evaluation.devices.cuda import CudaDevice
from kbtui.problems import load_problem

KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_rows(x_ptr, out_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    row = (tl.program_id(0) % n_rows).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < n_cols
    x = tl.load(x_ptr + row * n_cols + columns, mask=inside, other=float("-inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n_cols + columns, e / tl.sum(e, axis=0), mask=inside)


def kernel_function(x):
    out = torch.empty_like(x)
    n_rows, n_cols = x.shape
    block = triton.next_power_of_2(n_cols)
    softmax_rows[(n_rows + n_rows * EXTRA // 100,)](x, out, n_rows, n_cols, BLOCK=block, num_warps=WARPS)
    return out
"""
LARGE, SMALL, LONG = "3072x16384", "16x16384", "12288x16384"
#: About what one comparison takes, seconds of wall time: shapes get their part of the time by it.
TAKES_S = {MEASURE: 1.4, PROFILE: 3.6}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of comparison; ``extra_pct`` of rows are done twice by the other side."""

    name: str
    shape: str
    extra_pct: int
    rung: int


KINDS = (
    Kind("same", LARGE, 0, MEASURE),
    Kind("same", SMALL, 0, MEASURE),
    Kind("planted 2", LARGE, 2, MEASURE),
    Kind("planted 1", LARGE, 1, PROFILE),
    Kind("same, long", LONG, 0, MEASURE),
)

SAID = {"same": "the same kernel", "same, long": "the same kernel", "planted 2": "does 2 % more",
        "planted 1": "does 1 % more, three process pairs"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison, as kept: ratio is other over candidate, times in microseconds, seconds of wall time."""

    kind: str
    shape: str
    index: int
    outcome: str
    ratio: float
    low: float
    high: float
    n_pairs: int
    n_processes: int
    candidate_us: float
    unstable: str | None
    wall_s: float
    #: By process pair: the medians of both sides in each ABBA pair, candidate's and other's, microseconds.
    pairs_us: tuple[tuple[tuple[float, float], ...], ...] = ()


def problem_of(shape_name: str) -> Problem:
    """The softmax sample, timed on one shape only."""
    problem = on_shape(load_problem("softmax"), SMALL)
    if shape_name == SMALL:
        return problem
    small, *others = problem.spec.shapes
    n_rows = int(shape_name.partition("x")[0])
    large = replace(small, name=shape_name, dims=tuple((k, n_rows if k == "rows" else v) for k, v in small.dims))
    return replace(problem, spec=replace(problem.spec, shapes=(large, *others)))


def source(kind: Kind, index: int, side: str, extra_pct: int) -> str:
    """Unlike every other source, so that no child and no compiled kernel is used twice."""
    text = KERNEL.replace("EXTRA", str(extra_pct)).replace("WARPS", "16")
    return f"{text}\n# {kind.name} {kind.shape} {index} {side}\n"


def compare(device: CudaDevice, kind: Kind, index: int) -> Row:
    rung = replace(DEFAULT_LADDER[kind.rung], profile=False)
    mine, theirs = source(kind, index, "candidate", 0), source(kind, index, "other", kind.extra_pct)
    began = time.monotonic()
    request = EvaluationRequest("c0002", mine, rung, index, 2, Opponent("c0001", theirs), None)
    evaluated = device.evaluate(request, _unwatched)
    outcome = evaluated.outcome
    assert outcome.measurement is not None, outcome.verdict
    found, timing = outcome.measurement.comparisons[0], outcome.measurement.timings[0]
    return Row(
        kind.name, kind.shape, index, found.outcome.value, found.ratio, found.low, found.high, found.n_pairs,
        found.n_processes, timing.device_us, outcome.measurement.unstable, time.monotonic() - began,
        medians_of(evaluated, kind.shape),
    )  # fmt: skip


def medians_of(evaluated: Evaluated, shape: str) -> tuple[tuple[tuple[float, float], ...], ...]:
    """What another rule could decide on, without a GPU."""
    samples = next(json.loads(a.content) for a in evaluated.attachments if a.name.startswith("samples-"))
    return tuple(
        tuple((round(median(p["candidate"]), 3), round(median(p["other"]), 3)) for p in by_shape[shape])
        for process in samples["processes"]
        for by_shape in process.values()
    )


def _unwatched(sample: LiveSample) -> None:
    """Only the decisions count here."""


def share(kind: Kind, counts: dict[str, int]) -> int:
    """How many of the comparisons asked for under its name are of this kind."""
    return counts[kind.name] // sum(k.name == kind.name for k in KINDS)


def wanted(kinds: tuple[Kind, ...], counts: dict[str, int], done: list[Row]) -> Iterator[tuple[Kind, int]]:
    """What is still to do, kinds in turn."""
    have = {(r.kind, r.shape, r.index) for r in done}
    for index in range(max(counts.values())):
        for kind in kinds:
            if index < share(kind, counts) and (kind.name, kind.shape, index) not in have:
                yield kind, index


def run(options: argparse.Namespace) -> None:
    counts = {"same": options.same, "planted 2": options.planted, "planted 1": options.planted // 2,
              "same, long": options.long}  # fmt: skip
    end = time.monotonic() + options.seconds
    done = read(options.out)
    by_shape = [tuple(k for k in KINDS if k.shape == shape) for shape in (LARGE, SMALL, LONG)]
    needs_s = [sum(TAKES_S[k.rung] for k, _ in wanted(kinds, counts, done)) for kinds in by_shape]
    for number, kinds in enumerate(by_shape):
        if needs_s[number] > 0:
            # Each shape gets its part of the time that is left by what it needs, not by what came first.
            part = needs_s[number] / sum(needs_s[number:])
            play(options, kinds, counts, time.monotonic() + part * (end - time.monotonic()))


def play(options: argparse.Namespace, kinds: tuple[Kind, ...], counts: dict[str, int], until: float) -> None:
    todo = list(wanted(kinds, counts, read(options.out)))
    if not todo:
        return
    with tempfile.TemporaryDirectory(prefix="kbtui-adjudication-") as root:
        device = CudaDevice(options.device, Path(root))
        try:
            device.open(problem_of(kinds[0].shape))
            with options.out.open("a") as out:
                if out.tell() == 0:
                    print(json.dumps(heading(device)), file=out, flush=True)
                for number, (kind, index) in enumerate(todo):
                    if time.monotonic() > until:
                        return
                    ahead(device, todo[number : number + 6])
                    print(json.dumps(asdict(compare(device, kind, index))), file=out, flush=True)
        finally:
            device.close()


def ahead(device: CudaDevice, coming: list[tuple[Kind, int]]) -> None:
    for kind, index in coming:
        device.prefetch(source(kind, index, "candidate", 0))
        device.prefetch(source(kind, index, "other", kind.extra_pct))


def heading(device: CudaDevice) -> dict[str, object]:
    spec = device.spec
    when = time.strftime("%Y-%m-%d", time.gmtime())
    return {"command": " ".join(sys.argv), "device": spec.name, "uuid": spec.uuid, "date": when}


def read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [Row(**line) for line in lines if "kind" in line]


def summary(rows: list[Row]) -> str:
    told = [
        f"{'kind':<10} {'shape':<11} {'n':>4} {'us':>8} {'true':>7} {'sd of one':>10} faster slower tie unclear wall s"
    ]
    for kind in KINDS:
        mine = [r for r in rows if (r.kind, r.shape) == (kind.name, kind.shape)]
        if not mine:
            continue
        n = {o: sum(r.outcome == o for r in mine) for o in ("faster", "slower", "tie", "unclear")}
        ratios = [r.ratio for r in mine]
        told.append(
            f"{kind.name:<10} {kind.shape:<11} {len(mine):>4} {median(r.candidate_us for r in mine):>8.2f} "
            f"{median(ratios):>7.4f} {pstdev(ratios):>10.5f} {n['faster']:>6} {n['slower']:>6} "
            f"{n['tie']:>3} {n['unclear']:>7} {median(r.wall_s for r in mine):>6.2f}"
        )
    return "\n".join(told)


def page(path: Path) -> str:
    """The same for docs/measurement.md, with the share of wrong and of found ones."""
    rows = read(path)
    lines = ["| other side | kernel | n | true ratio | sd of one | called faster | slower | tie | unclear | pairs |",
             "|---|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for kind in KINDS:
        mine = [r for r in rows if (r.kind, r.shape) == (kind.name, kind.shape)]
        if not mine:
            continue
        n = {o: sum(r.outcome == o for r in mine) for o in ("faster", "slower", "tie", "unclear")}
        ratios, us = [r.ratio for r in mine], median(r.candidate_us for r in mine)
        lines.append(
            f"| {SAID[kind.name]} | {us:.1f} µs | {len(mine)} | {median(ratios):.4f} |"
            f" {100 * pstdev(ratios):.2f} % | {n['faster']} | {n['slower']} | {n['tie']} | {n['unclear']} |"
            f" {sum(r.n_pairs for r in mine) / len(mine):.1f} |"
        )
    made = json.loads(path.read_text().partition("\n")[0])
    by = f"Made by `python {made['command']}`, {made['date']}, {made['device']}."
    return "\n".join((*lines, "", by))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--same", type=int, default=200, help="null comparisons, over both shapes")
    parser.add_argument("--planted", type=int, default=100, help="of a planted 2 %%; half as many of 1 %%")
    parser.add_argument("--long", type=int, default=24, help="null comparisons of the long kernel")
    parser.add_argument("--seconds", type=float, default=500.0, help="stop after so long")
    parser.add_argument("--out", type=Path, default=Path("adjudication.jsonl"))
    parser.add_argument("--summary", type=Path, help="print the table of this file, and do nothing else")
    parser.add_argument("--docs", type=Path, help="with --summary: write the table into this page too")
    parser.add_argument("--mark", default="measured", help="between which marks of the page")
    options = parser.parse_args()
    if options.summary is None:
        run(options)
    print(summary(read(options.summary or options.out)))
    if options.docs is not None:
        told = page(options.summary or options.out)
        options.docs.write_text(between(options.docs.read_text(), options.mark, told))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
