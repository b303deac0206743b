"""Where and how the run ran: device, ladder, budget, seed, sandbox; and the machine that made the page. Pure."""

from collections.abc import Iterable

from kbtui.leaving.page.shown import Shown
from kbtui.leaving.page.text import esc, tag, us
from kbtui.leaving.software import software
from store.subject import budget_text


def environment_section(shown: Shown) -> str:
    run = _pairs(_of_run(shown))
    device = _pairs(_of_device(shown))
    here = _pairs([*shown.exporter.items()])
    ran_with = _pairs(_of_software(shown))
    blocks = [("Run", run), ("Device", device), ("Run with", ran_with), ("This page was made with", here)]
    blocks = [(name, body) for name, body in blocks if body]
    return tag("div", "".join(tag("div", tag("h3", esc(name)) + body) for name, body in blocks), class_="pair env")


def _of_run(shown: Shown) -> list[tuple[str, str]]:
    state = shown.state
    started = state.started
    assert started is not None
    ladder = ", ".join(f"{r.index} {r.name} (gate {r.gate_stage}, ≤ {r.max_pairs} pairs)" for r in started.ladder)
    sandbox = state.opened.report.sandbox if state.opened else ()
    found = [
        ("run", started.run),
        ("problem", f"{started.problem} ({started.problem_path})"),
        ("problem's SHA-256", started.problem_sha),
        ("began", shown.envelopes[0].at),
        ("last event", shown.envelopes[-1].at),
        ("seed", str(started.seed)),
        ("budget", budget_text(state.budget)),
        ("generators", ", ".join(started.generators) + (f" ({started.model})" if started.model else "")),
        ("ladder", ladder),
        ("best kernel's commit", shown.best.commit),
        ("not enforced by the sandbox", "; ".join(sandbox)),
    ]
    found += [(f"hint by a person, {i}", text) for i, text in enumerate(state.user_hints, 1)]
    found += [("bounds", shown.no_problem)] if shown.spec is None else []
    return [(k, v) for k, v in found if v]


def _of_device(shown: Shown) -> list[tuple[str, str]]:
    assert shown.state.started is not None
    d = shown.state.started.device
    return [
        ("name", f"{d.name} ({d.key})"),
        ("times", str(d.clock)),
        ("compute capability", f"{d.arch // 10}.{d.arch % 10}"),
        ("multiprocessors", f"{d.n_sms} at {d.sm_clock_mhz:,.0f} MHz"),
        ("memory", f"{d.memory_bytes / 2**30:.0f} GiB at {d.dram_gb_s:,.0f} GB/s"),
        ("L2", f"{d.l2_bytes / 2**20:.0f} MiB"),
        ("shared memory", f"{d.shared_per_sm / 1024:.0f} KiB a multiprocessor"),
        ("fp32 / TF32 / fp16", f"{d.fp32_tflops:g} / {d.tf32_tflops:g} / {d.fp16_tflops:g} TFLOP/s"),
        ("an empty kernel", us(d.launch_us)),
        *([("UUID", d.uuid)] if d.uuid else []),
    ]


def _of_software(shown: Shown) -> list[tuple[str, str]]:
    facts, changes = software(shown.envelopes)
    later = [(f"from event {c.seq} on", f"{name} {value or 'gone'}") for c in changes for name, value in c.now.items()]
    return [*facts.items(), *later]


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    found = list(pairs)
    if not found:
        return ""
    return tag("dl", "".join(tag("dt", esc(k)) + tag("dd", esc(v)) for k, v in found))
