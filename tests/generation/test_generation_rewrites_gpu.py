"""The GPU's sample of the rewrites study is a fair one, and a kernel that failed before its edit is no edit's fault."""

import json

from benchmarks.rewrites_gpu import Sampling, counts, resumed, sampled, told
from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.evaluation import Evaluated, RungOutcome
from kbtui.domain.verdict import Proof, Reason, Verdict, rejected, unverified, verified
from kbtui.evaluation.devices.cuda_gates import Gated
from kbtui.generation.rewrites import REWRITES


class ByText:
    """A device that rejects sources that hold ``bad``; ``spec`` is whatever dataclass the report may show."""

    def __init__(self, spec):
        self.spec = spec

    def evaluate(self, request, on_sample):
        return Evaluated(RungOutcome(_verdict(request.source), 0.0, 0.0))


class Slowly:
    """As ``WholeGates``: what is good is known when the next is put, or at the end; what is bad at once."""

    def __init__(self):
        self._waiting = []

    def put(self, name, source):
        if not (verdict := _verdict(source)).ok:
            return [Gated(name, verdict)]
        old = self.finish()
        self._waiting.append(Gated(name, verdict, 2.5))
        return old

    def finish(self):
        old, self._waiting = self._waiting, []
        return old


class GatingMany(ByText):
    def whole_gates(self, seed, alone):
        return Slowly()


def _verdict(source: str) -> Verdict:
    return rejected(Reason.WRONG_VALUES, 1, Proof.GPU, "wrong") if "bad" in source else verified(4, Proof.GPU, "37")


def row(before: str, source: str, edit: str = "a to b") -> dict:
    return {"rewrite": "exp2", "kernel": "k", "edit": edit, "problem": "p", "before": before, "source": source}


def test_the_sample_takes_every_rewrite_alike_on_many_kernels():
    rows = sampled(len(REWRITES), seed=0)

    assert sorted(r["rewrite"] for r in rows) == sorted(rewrite.name for rewrite in REWRITES)
    assert len({r["kernel"] for r in rows}) >= 15
    assert rows == sampled(len(REWRITES), seed=0)


def test_an_edit_is_blamed_only_where_the_kernel_passed_before_it(tmp_path):
    rows = [row("good", "fine", "1"), row("good", "bad", "2"), row("bad", "bad too", "3")]
    sampling = Sampling(rows, tmp_path / "out.json", {})

    for each in rows:
        sampling.gate(ByText(DATA_SHEETS["a100"]), each)

    found = counts(rows)
    assert (found["judged"], found["kept"], found["failed_before_the_edit"]) == (2, 1, 1)


def test_late_verdicts_reach_the_rows_that_they_are_about(tmp_path):
    rows = [row("good", "fine", "1"), row("good", "bad", "2"), row("good", "fine", "3"), row("good", "fine", "4")]
    sampling, device = Sampling(rows, tmp_path / "out.json", {}), GatingMany(DATA_SHEETS["a100"])

    for each in rows:
        sampling.gate(device, each)
    assert [r.get("verdict") for r in rows] == ["verified", "rejected", "verified", None]
    sampling.gating.finish(device)

    assert [r["verdict"] for r in rows] == ["verified", "rejected", "verified", "verified"]
    assert [r["age_s"] for r in rows] == [2.5, None, 2.5, 2.5]
    assert rows[1]["before_edit"]["verdict"] == "verified"
    kept = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert [k["edit"] for k in kept] == ["1", "2", "3", "4"], "one that waits has no verdict to be kept"


def test_verdicts_that_were_kept_are_not_asked_for_again_unless_they_were_our_fault(tmp_path):
    rows = [row("good", "fine", "1"), row("good", "bad", "2")]
    sampling = Sampling(rows, tmp_path / "out.json", {})
    for each in rows:
        sampling.gate(ByText(DATA_SHEETS["a100"]), each)
    lost = row("good", "fine", "3") | told(unverified(Reason.DEVICE_LOST, 1, Proof.GPU, "gone")) | {"wall_s": 0.0}
    rows.append(lost)
    sampling.save()

    again = [row("good", "fine", "1"), row("good", "bad", "2"), row("good", "fine", "3")]
    resumed(again, tmp_path / "out.json")

    assert [r.get("verdict") for r in again] == ["verified", "rejected", None]
