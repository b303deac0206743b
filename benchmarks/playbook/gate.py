"""The whole gate for each entry's defaults and each problem's fastest, then times beside eager. Effects: the device."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.playbook.rows import Row, best_of
from kbtui.commands.verify import whole_gate
from kbtui.domain.evaluation import EvaluationRequest
from kbtui.domain.measurement import Measurement
from kbtui.domain.rung import CONFIRM, Rung
from kbtui.engine.ports import Device
from kbtui.evaluation.baselines import EAGER
from kbtui.evaluation.devices import open_device
from kbtui.problems import load_problem

#: As kbtui bench times, but two pairs of processes are enough here.
BESIDE_EAGER = Rung(CONFIRM, "beside eager", gate_stage=4, max_pairs=6, process_pairs=2, profile=False, share=1.0)


def gate_all(rows: list[Row], device: str, until: float, save: Callable[[], None]) -> None:
    """The whole gate, then times beside eager, of the defaults and of each problem's fastest."""
    for problem in dict.fromkeys(row["problem"] for row in rows):
        mine = [row for row in rows if row["problem"] == problem]
        best = {id(fastest) for fastest in best_of(mine).values()}
        chosen = [row for row in mine if row["number"] == 0 or id(row) in best]
        with tempfile.TemporaryDirectory(prefix="playbook-gate-") as folder:
            opened = None
            try:
                opened = open_device(device, Path(folder))
                opened.open(load_problem(problem))
                for row in chosen:
                    if time.monotonic() < until:
                        gated(opened, row)
                        save()
            except Exception as error:  # a device that cannot be had: the rows say so
                for row in chosen:
                    row.setdefault("gate", f"unverified: {type(error).__name__}: {str(error)[:200]}")
            finally:
                if opened is not None:
                    opened.close()


def gated(device: Device, row: Row) -> None:
    began, source = time.monotonic(), Path(row["path"]).read_text()
    verdict = whole_gate(device, source, 0)
    row["gate"] = f"{verdict.kind} {verdict.reason or ''}: {verdict.detail}"
    row["gate_s"] = round(time.monotonic() - began, 1)
    if verdict.ok:
        request = EvaluationRequest(row["entry"], source, BESIDE_EAGER, 0, BESIDE_EAGER.gate_stage, None, None)
        outcome = device.evaluate(request, lambda _: None).outcome
        row["times_us"] = beside_eager(outcome.measurement)
        if outcome.measurement is None:
            row["gate"] = f"{outcome.verdict.kind} {outcome.verdict.reason} while timed: {outcome.verdict.detail}"
    print(f"{row['entry']} #{row['number']} in {row['gate_s']} s: {row['gate']} {row.get('times_us')}", flush=True)


def beside_eager(found: Measurement | None) -> dict[str, Row]:
    """By shape: the kernel's time, and how many times that eager took in the same turns, with the 95 % interval."""
    against = found.against(EAGER) if found is not None else None
    if found is None or against is None:
        return {}
    kernel_us = {timing.shape: timing.device_us for timing in found.timings}
    return {s.shape: {"kernel": round(kernel_us[s.shape], 2), "eager": round(kernel_us[s.shape] * s.ratio, 2),
                      "ratio": round(s.ratio, 3), "low": round(s.low, 3), "high": round(s.high, 3)}
            for s in against.shapes}  # fmt: skip
