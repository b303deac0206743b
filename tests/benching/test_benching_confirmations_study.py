"""What confirmations cost on the recorded pools: a line a pool, with and without further process pairs."""

from pathlib import Path

import pytest

from benchmarks.confirmations_study import ONCE, line_of, main
from benchmarks.pool_strategies import search
from kbtui.domain.evaluation import Evaluated, EvaluationRequest
from kbtui.domain.rung import CONFIRM, DEFAULT_LADDER, Rung
from kbtui.evaluation.devices.replay import ReplayDevice

POOLS = Path(__file__).parents[2] / "benchmarks/pools"
POOL = POOLS / "mat_vec-h200-full.jsonl.gz"


def test_a_pool_is_told_in_one_line_of_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / POOL.name).symlink_to(POOL)
    main(["--seeds", "2", "--pools", str(tmp_path)])
    head, _, line = capsys.readouterr().out.splitlines()
    assert line == line_of(POOL, 2, DEFAULT_LADDER)
    assert line.startswith("| mat_vec-h200-full | 2 of 2 |")
    assert line.count("|") == head.count("|")


@pytest.mark.parametrize(("ladder", "further"), [(ONCE, {0}), (DEFAULT_LADDER, {3})], ids=["once", "as ever"])
def test_confirmations_may_play_further_pairs_or_none(
    ladder: tuple[Rung, ...], further: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[int] = set()
    evaluate = ReplayDevice.evaluate

    def watched(device: ReplayDevice, request: EvaluationRequest, on_sample: object) -> Evaluated:
        if request.rung.index == CONFIRM:
            asked.add(request.rung.more_process_pairs)
        return evaluate(device, request, on_sample)

    monkeypatch.setattr(ReplayDevice, "evaluate", watched)
    search(ReplayDevice(POOL), 0, ladder=ladder)
    assert asked == further
