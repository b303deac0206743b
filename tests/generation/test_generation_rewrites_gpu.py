"""The GPU's sample of the rewrites study is a fair one, and a kernel that failed before its edit is no edit's fault."""

from benchmarks.rewrites_gpu import Gating, counts, resumed, sampled, told
from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.evaluation import Evaluated, RungOutcome
from kbtui.domain.verdict import Proof, Reason, Verdict, rejected, unverified, verified
from kbtui.generation.rewrites import REWRITES


class ByText:
    """A device that rejects sources that hold ``bad``; ``spec`` is whatever dataclass the report may show."""

    def __init__(self, spec):
        self.spec = spec

    def evaluate(self, request, on_sample):
        return Evaluated(RungOutcome(_verdict(request.source), 0.0, 0.0))


def _verdict(source: str) -> Verdict:
    return rejected(Reason.WRONG_VALUES, 1, Proof.GPU, "wrong") if "bad" in source else verified(4, Proof.GPU, "37")


def row(before: str, source: str, edit: str = "a to b") -> dict:
    return {"rewrite": "exp2", "kernel": "k", "edit": edit, "problem": "p", "before": before, "source": source}


def test_the_sample_takes_every_rewrite_alike_on_many_kernels():
    rows = sampled(2 * len(REWRITES), seed=0)

    assert sorted(r["rewrite"] for r in rows) == sorted(2 * [rewrite.name for rewrite in REWRITES])
    assert len({r["kernel"] for r in rows}) >= 25
    assert rows == sampled(2 * len(REWRITES), seed=0)


def test_an_edit_is_blamed_only_where_the_kernel_passed_before_it(tmp_path):
    rows = [row("good", "fine", "1"), row("good", "bad", "2"), row("bad", "bad too", "3")]
    gating = Gating(rows, tmp_path / "out.json", {})

    for each in rows:
        gating.gate(ByText(DATA_SHEETS["a100"]), each)

    found = counts(rows)
    assert (found["judged"], found["kept"], found["failed_before_the_edit"]) == (2, 1, 1)


def test_verdicts_that_were_kept_are_not_asked_for_again_unless_they_were_our_fault(tmp_path):
    rows = [row("good", "fine", "1"), row("good", "bad", "2")]
    gating = Gating(rows, tmp_path / "out.json", {})
    for each in rows:
        gating.gate(ByText(DATA_SHEETS["a100"]), each)
    lost = row("good", "fine", "3") | told(unverified(Reason.DEVICE_LOST, 1, Proof.GPU, "gone")) | {"wall_s": 0.0}
    rows.append(lost)
    gating.save()

    again = [row("good", "fine", "1"), row("good", "bad", "2"), row("good", "fine", "3")]
    resumed(again, tmp_path / "out.json")

    assert [r.get("verdict") for r in again] == ["verified", "rejected", None]
