"""The six benchmarks as Markdown: what was asked beside what was measured. Pure.

What was not measured is said to be so, never left blank. Modelled and replayed numbers have tables of their own.
"""

from collections.abc import Iterable, Mapping, Sequence

from benchmarks.six import judging
from benchmarks.six.cases import Case
from benchmarks.six.cells import NOTHING, beside, percent, ratio_of
from benchmarks.six.ladder import ladder_note, ladder_rows, ladder_words
from benchmarks.six.markdown import markdown_table, wrapped
from benchmarks.six.parts import Parts, note, table_rows
from benchmarks.six.record import (
    CHAMPION,
    DRAFT,
    FIRST,
    MEASURED,
    MODELLED,
    REPLAYED,
    CaseRecord,
    OnA100,
)
from benchmarks.six.summary import NOT_MEASURED, costs, summary
from benchmarks.six.summary import name_of as _name
from benchmarks.six.targets import measured_before, stopped, targets
from kbtui.domain.profile import KernelResources
from kbtui.evaluation.baselines import LIBRARIES

Records = Mapping[str, CaseRecord]
#: Facts that a reader of a time asks for first.
_FACTS = ("driver", "CUDA of the driver", "torch", "triton", "python", "cores")


def section(cases: Sequence[Case], records: Records, taken: Parts, plots: Iterable[str] = ()) -> str:
    """``records`` by case; ``taken``: what other files say of a search's parts; ``plots``: names of picture files."""
    measured = {name: r for name, r in records.items() if r.kind == MEASURED}
    parts = [
        "## Six benchmarks",
        _intro(),
        _provenance(measured),
        summary(cases, measured, ladder_words(taken)),
        "### Every case",
        targets(cases, measured),
        measured_before(_of(cases, measured)),
        stopped(_of(cases, measured)),
        *(f"![{_caption(name)}]({name})" for name in plots),
    ]
    if measured:
        parts += ["### Beside no search, and beside libraries", _others(cases, measured)]
        parts += ["### Bandwidth", _bandwidth(cases, measured)]
        parts += ["### What the searches spent", _searches(cases, measured)]
        parts += ["### The champions on an A100", _a100(cases, measured)]
    parts += ["### What each part of a search is worth", note(taken), markdown_table(*table_rows(taken))]
    parts += _both_ways(taken)
    parts += _not_measured(cases, records, MODELLED, "Modelled, not measured")
    parts += _not_measured(cases, records, REPLAYED, "Replayed from a recorded pool, not measured")
    return "\n\n".join(wrapped(part) for part in parts if part) + "\n"


def _both_ways(taken: Parts) -> list[str]:
    """Of searches with the ladder and without it on a GPU, where there were some."""
    title = "### With the ladder and without it, on a GPU"
    return [title, ladder_note(taken), markdown_table(*ladder_rows(taken))] if taken.without_ladder else []


def _intro() -> str:
    return (
        "`make bench-six` (`python benchmarks/bench_six.py`): a search for each case with playbook and rewrites alone, "
        "then one measurement in which the champion takes turns with everything it is compared with, each in a process "
        "of its own: device time, cold L2, three fresh process pairs, 95 % intervals. Ratios in one row are of one "
        "measurement; times of two rows are not to be compared. The expert had one hour, Triton 3.6 and one H200. "
        "Asked is the expert's speedup less 3 %, or 10 % where the expert's kernel took under 20 µs. A win is faster, "
        "by adjudication, than PyTorch eager and than every mode of torch.compile that was timed; else what is kept is "
        "PyTorch."
    )


def _provenance(measured: Records) -> str:
    machines = dict.fromkeys(_machine(r) for r in measured.values())
    searches = dict.fromkeys(_searched_by(r) for r in measured.values() if r.earlier)
    kept = "Kernels, every pair's times, clocks and versions: `benchmarks/results/six/CASE.json`; clone `CASE.bundle`."
    return "\n".join([kept, "", *(f"- {line}" for line in (*machines, *searches))]) if machines else ""


def _searched_by(record: CaseRecord) -> str:
    """The call that searched, and first measured, what ``--again`` measured anew."""
    first = record.earlier[0]
    return f"searched before `--again`, {record.device.name}, {first.date[:10]}, `{first.command}`"


def _machine(record: CaseRecord) -> str:
    facts = dict(record.environment)
    versions = ", ".join(f"{name} {facts[name]}" for name in _FACTS if name in facts)
    return f"{record.device.name}, {versions}, {record.contest.date[:10]}, `{record.contest.command}`"


def _others(cases: Sequence[Case], measured: Records) -> str:
    head = ("case", "champion", "over the first kernel", "over the best draft", *LIBRARIES)
    rows, missing = [], []
    for case, record in _of(cases, measured):
        champion, contest = record.kernel(CHAMPION), record.contest
        same = _same_as_champion(record)
        rows.append((
            _name(case),
            champion.summary if champion else "",
            *(same.get(role) or beside(contest, role) for role in (FIRST, DRAFT)),
            *(beside(contest, name) for name in LIBRARIES),
        ))  # fmt: skip
        missing += [(f"{a.name}: {a.error}", _name(case)) for a in contest.against if a.ratio is None]
    why = [f"- {reason} ({', '.join(names)})" for reason, names in _grouped(missing)]
    untimed = ["Not timed:", "\n".join(why)] if why else []
    note = (
        "Best draft: the fastest of the playbook's structures at their defaults, each drafted once, before any "
        "search. Libraries: their kernel for the same operation, in the same turns; above 1 the champion is faster."
    )
    return "\n\n".join([note, markdown_table(head, rows), *untimed])


def _same_as_champion(record: CaseRecord) -> dict[str, str]:
    champion = record.kernel(CHAMPION)
    same = [r for r in (FIRST, DRAFT) if (k := record.kernel(r)) and champion and k.source == champion.source]
    return dict.fromkeys(same, "is the champion")


def _bandwidth(cases: Sequence[Case], measured: Records) -> str:
    head = (
        "case", "bound by", "champion GB/s", "ceiling GB/s", "share", "without a launch",
        f"{percent(judging.BANDWIDTH_ASKED)} asked",
    )  # fmt: skip
    rows = []
    for case, record in _of(cases, measured):
        bound, found = judging.bound(case, record), judging.bandwidth(case, record)
        asked = judging.asked_bandwidth(case, record)
        rows.append((
            _name(case),
            str(bound),
            f"{found.champion_gb_s:.0f}" if found else NOT_MEASURED,
            f"{found.ceiling_gb_s:.0f} ({case.ceiling})" if found else NOT_MEASURED,
            percent(found.share) if found else NOTHING,
            percent(found.running_share) if asked else NOTHING,
            ("yes" if asked.enough else "no") if asked else "not asked",
        ))  # fmt: skip
    note = (
        "The operation's least bytes over the champion's time, beside a copy of 512 MiB (or, where it only reads, a "
        "read of 1 GiB) in the same turns. Bound by: the data sheet's rates; an operation that needs less than an "
        "empty kernel is bound by its launch. Without a launch: the share when the time of an empty kernel, measured "
        f"as the machine was opened ({_launches(measured)}), is taken off both; what is asked counts it in."
    )
    return f"{note}\n\n{markdown_table(head, rows)}"


def _launches(measured: Records) -> str:
    found = sorted(record.device.launch_us for record in measured.values())
    return f"{found[0]:.2f}–{found[-1]:.2f} µs" if found[0] != found[-1] else f"{found[0]:.2f} µs"


def _searches(cases: Sequence[Case], measured: Records) -> str:
    head = (
        "case", "s", "within 2 % after s (GPU s)", "candidates", "evaluations", "rejected", "pruned at", "GPU held",
        "GPU idle", "wall time by rung",
    )  # fmt: skip
    rows = []
    for case, record in _of(cases, measured):
        story = record.story
        soon = story.within_wall_s
        rows.append((
            _name(case),
            f"{story.wall_s:.0f}",
            f"{soon:.0f} ({story.within_gpu_s or 0:.0f})" if soon is not None else "never",
            str(story.n_candidates),
            str(story.n_evaluations),
            _counts((*story.rejected, *((f"{r}, not its fault", n) for r, n in story.unverified))) or "none",
            _counts(story.pruned) or "none",
            percent(story.held_share),
            percent(story.idle_share) if story.idle_share is not None else "not sampled",
            ", ".join(f"{s.rung} {percent(s.wall_s / max(story.wall_s, 1e-9))}" for s in story.spent) or NOTHING,
        ))  # fmt: skip
    note = (
        "Seconds count from the engine's start, opening included. Within 2 %: when a candidate first scored so close "
        "to the final champion. GPU held: evaluations' share of the time. GPU idle: NVML's utilisation samples."
    )
    return "\n\n".join(filter(None, (note, markdown_table(head, rows), costs(_of(cases, measured)))))


def _a100(cases: Sequence[Case], measured: Records) -> str:
    head = ("case", "the champion for sm_80", "registers", "shared KiB", "in its place")
    rows = []
    for case, record in _of(cases, measured):
        found = record.a100
        if found is None:
            rows.append((_name(case), "not compiled yet", NOTHING, NOTHING, NOTHING))
            continue
        rows.append((
            _name(case),
            "fits" if found.fits else found.fault or "",
            *_most(found.resources if found.fits or found.substitute else ()),
            NOTHING if found.fits else _substitute(found),
        ))  # fmt: skip
    note = (
        "Compiled, not run: at most 163 KiB of shared memory a block, and no spills. Numbers are of the one that fits."
    )
    return f"{note}\n\n{markdown_table(head, rows)}"


def _substitute(found: OnA100) -> str:
    if found.substitute is None:
        return f"none of {found.tried}"
    return f"{found.substitute} {found.substitute_summary or ''}".strip()


def _most(resources: Sequence[KernelResources]) -> tuple[str, str]:
    if not resources:
        return NOTHING, NOTHING
    registers = max(r.registers for r in resources)
    return str(registers), f"{max(r.shared_bytes for r in resources) / 1024:.1f}"


def _not_measured(cases: Sequence[Case], records: Records, kind: str, title: str) -> list[str]:
    """A table of its own, over the first kernel: PyTorch has no time there."""
    of_kind = {name: r for name, r in records.items() if r.kind == kind}
    if not of_kind:
        return []
    head = ("case", "device", "champion", "over the first kernel", "over the best draft", "candidates")
    rows = []
    for case, record in _of(cases, of_kind):
        champion, same = record.kernel(CHAMPION), _same_as_champion(record)
        ratios = (same.get(role) or ratio_of(record.contest.beside(role)) for role in (FIRST, DRAFT))
        summary = champion.summary if champion else ""
        rows.append((_name(case), record.device.name, summary, *ratios, str(record.story.n_candidates)))
    return [f"### {title}", markdown_table(head, rows)]


def _of(cases: Sequence[Case], records: Records) -> list[tuple[Case, CaseRecord]]:
    return [(case, records[case.name]) for case in cases if case.name in records]


def _grouped(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for reason, name in pairs:
        found.setdefault(reason, []).append(name)
    return list(found.items())


def _counts(counts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{word} {n}" for word, n in counts)


def _caption(name: str) -> str:
    return {
        "six-speedups.svg": "Speedup over PyTorch eager: champion, torch.compile and the expert",
        "six-searches.svg": "Best so far over each search's time",
        "six-budgets.svg": "What each search's time went into",
    }.get(name, name)
