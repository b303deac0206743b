"""Playing a pool back: what was recorded comes back as it was, what was not is derived, matches are drawn anew."""

from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from kbtui.domain.candidate import Candidate, source_sha
from kbtui.domain.evaluation import EvaluationRequest, Opponent
from kbtui.domain.measurement import LiveSample, Outcome
from kbtui.domain.pool import PoolCandidate
from kbtui.domain.proposal import Phase, ProposalRequest
from kbtui.domain.rung import COMPILE, CONFIRM, DEFAULT_LADDER, MEASURE, PROFILE, SCREEN
from kbtui.domain.verdict import Reason, VerdictKind, rejected
from kbtui.errors import UsageError
from kbtui.evaluation.devices.replay import ReplayDevice, confirm_surcharge, median_costs
from kbtui.generation.replay import recorded_generators
from kbtui.pool_file import read_pool, samples_by_process, write_pool
from kbtui.problems import load_problem
from tests.replay.pools import POOLS, SOFTMAX


@pytest.fixture(scope="module")
def device() -> ReplayDevice:
    return ReplayDevice(SOFTMAX)


def highest_is(device: ReplayDevice, rung: int) -> list[PoolCandidate]:
    return [c for c in device.pool.candidates if c.highest.rung == rung and c.highest.outcome.verdict.ok]


def asked(candidate: PoolCandidate, rung: int, other: PoolCandidate | None = None, seed: int = 0) -> EvaluationRequest:
    opponent = Opponent("c0099", other.source) if other else None
    return EvaluationRequest("c0001", candidate.source, DEFAULT_LADDER[rung], seed, -1, opponent, None)


def ignore(sample: LiveSample) -> None: ...


def without_pytorch(candidate: PoolCandidate, gpu_s: float) -> PoolCandidate:
    """The same, had its confirmation met the first kernel alone, and cost so much."""
    top = candidate.highest
    assert top.outcome.measurement is not None
    kept = tuple(c for c in top.outcome.measurement.comparisons if c.against == "first")
    outcome = replace(top.outcome, gpu_s=gpu_s, measurement=replace(top.outcome.measurement, comparisons=kept))
    return replace(candidate, rungs=(*candidate.rungs[:-1], replace(top, outcome=outcome)))


def test_a_confirmation_recorded_without_pytorch_costs_what_those_with_it_cost_more(tmp_path: Path) -> None:
    pool = read_pool(SOFTMAX)
    dear, cheap = sorted(highest_is(ReplayDevice(SOFTMAX), CONFIRM), key=lambda c: -c.highest.outcome.gpu_s)
    assert confirm_surcharge(pool) == (0.0, 0.0)  # all of them met it
    alone = without_pytorch(cheap, gpu_s=5.0)
    mixed = replace(pool, candidates=tuple(alone if c is not dear and c == cheap else c for c in pool.candidates))
    write_pool(tmp_path / "mixed.jsonl.gz", mixed)
    device = ReplayDevice(tmp_path / "mixed.jsonl.gz")
    paid = [device.evaluate(asked(c, CONFIRM), ignore).outcome.gpu_s for c in (dear, alone)]
    assert paid == [pytest.approx(dear.highest.outcome.gpu_s)] * 2
    measured = alone.at(MEASURE)
    assert measured is not None
    assert device.evaluate(asked(alone, MEASURE), ignore).outcome.gpu_s == measured.outcome.gpu_s


@pytest.mark.parametrize("path", POOLS, ids=lambda p: p.name.split(".")[0])
def test_a_confirmation_never_recorded_costs_the_median_of_what_recorded_ones_do(path: Path) -> None:
    """Whoever confirms what was not confirmed pays no less than for what was, and no other rung is dearer for it."""
    device = ReplayDevice(path)

    def cost_of(candidate: PoolCandidate, rung: int) -> float:
        return device.evaluate(asked(candidate, rung), ignore).outcome.gpu_s

    confirmed = [c for c in device.pool.candidates if c.at(CONFIRM)]
    never = [c for c in device.pool.candidates if not c.at(CONFIRM)]
    assert {cost_of(c, CONFIRM) for c in never} <= {median(cost_of(c, CONFIRM) for c in confirmed)}
    of_measure = [r.outcome.gpu_s for c in device.pool.candidates if (r := c.at(MEASURE))]
    assert {cost_of(c, MEASURE) for c in never if not c.at(MEASURE)} <= {median(of_measure)}


def test_the_surcharge_is_in_what_a_derived_confirmation_costs(tmp_path: Path) -> None:
    pool = read_pool(SOFTMAX)
    confirmed = highest_is(ReplayDevice(SOFTMAX), CONFIRM)
    dear = max(confirmed, key=lambda c: c.highest.outcome.gpu_s)
    never = highest_is(ReplayDevice(SOFTMAX), PROFILE)[0]
    alone = [without_pytorch(c, gpu_s=1.0) for c in confirmed if c is not dear]
    write_pool(tmp_path / "mixed.jsonl.gz", replace(pool, candidates=(dear, *alone, never)))
    derived = ReplayDevice(tmp_path / "mixed.jsonl.gz").evaluate(asked(never, CONFIRM), ignore).outcome
    assert derived.gpu_s == pytest.approx(dear.highest.outcome.gpu_s)


def test_a_recorded_rung_comes_back_with_its_verdict_times_and_cost(device: ReplayDevice) -> None:
    candidate = highest_is(device, PROFILE)[0]
    for recorded in candidate.rungs:
        outcome = device.evaluate(asked(candidate, recorded.rung), ignore).outcome
        assert outcome.verdict == recorded.outcome.verdict
        assert (outcome.gpu_s, outcome.wall_s) == (recorded.outcome.gpu_s, recorded.outcome.wall_s)
        assert outcome.resources == recorded.outcome.resources
        assert outcome.profile == recorded.outcome.profile
        if recorded.outcome.measurement:
            assert outcome.measurement is not None
            assert outcome.measurement.timings == recorded.outcome.measurement.timings


def test_a_rung_never_recorded_is_derived_at_the_median_cost_of_that_rung(device: ReplayDevice) -> None:
    candidate = highest_is(device, SCREEN)[0]
    outcome = device.evaluate(asked(candidate, MEASURE, highest_is(device, PROFILE)[0]), ignore).outcome
    assert (outcome.gpu_s, outcome.wall_s) == median_costs(device.pool, (0.0, 0.0))[MEASURE]
    assert "not recorded; as on rung 1" in outcome.verdict.detail
    assert outcome.measurement is not None
    assert [t.shape for t in outcome.measurement.timings] == ["4096x16384"], "no time is invented for other shapes"
    assert [s.shape for s in outcome.measurement.comparisons[0].shapes] == ["4096x16384"]


def test_a_candidate_that_failed_fails_on_every_rung(device: ReplayDevice) -> None:
    good = highest_is(device, MEASURE)[0]
    failed = rejected(Reason.WRONG_VALUES, 1, good.highest.outcome.verdict.proof, "relative L2 error 0.34")
    bad = replace(good.highest, rung=SCREEN, outcome=replace(good.highest.outcome, verdict=failed, measurement=None))
    fake = ReplayDevice(SOFTMAX)
    fake.pool = replace(fake.pool, candidates=(replace(good, rungs=(bad,)),))
    for rung in (SCREEN, MEASURE, CONFIRM):
        outcome = fake.evaluate(asked(good, rung), ignore).outcome
        assert outcome.verdict == failed
        assert outcome.measurement is None


def test_a_source_that_was_not_recorded_is_our_failure_and_costs_nothing(device: ReplayDevice) -> None:
    stranger = replace(device.pool.candidates[0], source="def kernel_function(x): ...")
    outcome = device.evaluate(asked(stranger, SCREEN), ignore).outcome
    assert (outcome.verdict.kind, outcome.verdict.reason) == (VerdictKind.UNVERIFIED, Reason.NOT_RECORDED)
    assert (outcome.gpu_s, outcome.wall_s) == (0.0, 0.0)


def test_any_two_candidates_meet_and_a_clear_difference_is_found_whatever_the_seed(device: ReplayDevice) -> None:
    timed = [c for c in device.pool.candidates if c.at(MEASURE)]

    def time_us(candidate: PoolCandidate) -> float:
        measured = candidate.at(MEASURE).outcome.measurement  # type: ignore[union-attr]
        return measured.timings[0].device_us if measured else float("inf")

    fast, slow = min(timed, key=time_us), max(timed, key=time_us)
    for seed in range(20):
        for mine, other, expected in ((fast, slow, Outcome.FASTER), (slow, fast, Outcome.SLOWER)):
            measured = device.evaluate(asked(mine, SCREEN, other, seed), ignore).outcome.measurement
            assert measured is not None
            found = measured.comparisons[0]
            assert found.outcome is expected
            assert found.low <= time_us(other) / time_us(mine) * 1.03
            assert found.high >= time_us(other) / time_us(mine) * 0.97


def test_a_candidate_is_hardly_ever_faster_than_itself(device: ReplayDevice) -> None:
    """The stated rate is half a percent one-sided; 4 of 300 would be a chance of about 1 in 15 at that rate."""
    candidate = highest_is(device, PROFILE)[0]
    outcomes = [
        device.evaluate(asked(candidate, MEASURE, candidate, seed), ignore).outcome.measurement for seed in range(300)
    ]
    faster = sum(m.comparisons[0].outcome is Outcome.FASTER for m in outcomes if m)
    assert faster <= 5


def test_draws_depend_on_the_seed_and_on_nothing_before(device: ReplayDevice) -> None:
    one, other = highest_is(device, PROFILE)[:2]
    first = device.evaluate(asked(one, MEASURE, other, 1), ignore).outcome
    device.evaluate(asked(other, MEASURE, one, 1), ignore)
    again = device.evaluate(asked(one, MEASURE, other, 1), ignore).outcome
    third = device.evaluate(asked(one, MEASURE, other, 2), ignore).outcome
    assert first == again
    assert first.measurement != third.measurement


def test_confirming_meets_pytorch_and_the_first_kernel_in_three_processes(device: ReplayDevice) -> None:
    one, other = highest_is(device, CONFIRM)[0], highest_is(device, PROFILE)[0]
    request = replace(asked(one, CONFIRM, other), first=Opponent("c0002", device.pool.candidates[0].source))
    measured = device.evaluate(request, ignore).outcome.measurement
    assert measured is not None
    assert [c.against for c in measured.comparisons] == ["c0099", "first", "eager"]
    assert {c.n_processes for c in measured.comparisons} == {3}


def test_a_confirmation_that_goes_on_costs_as_much_more_and_meets_pytorch_no_more(device: ReplayDevice) -> None:
    """Against itself about every other one is ahead by chance, and unclear."""
    one = highest_is(device, CONFIRM)[0]
    short = replace(asked(one, CONFIRM, one), rung=replace(DEFAULT_LADDER[CONFIRM], more_process_pairs=0))
    cost = device.evaluate(short, ignore).outcome
    played: list[int] = []
    for seed in range(24):
        outcome = device.evaluate(asked(one, CONFIRM, one, seed), ignore).outcome
        first = device.evaluate(replace(short, seed=seed), ignore).outcome
        assert outcome.measurement is not None
        assert first.measurement is not None
        met, eager = outcome.measurement.comparisons[0], outcome.measurement.comparisons[-1]
        assert (met.against, eager.against, eager.n_processes) == ("c0099", "eager", 3)
        assert (outcome.gpu_s, outcome.wall_s) == (
            cost.gpu_s * met.n_processes / 3, pytest.approx(cost.wall_s * met.n_processes / 3)
        )  # fmt: skip
        went_on = first.measurement.comparisons[0].outcome is Outcome.UNCLEAR and met.n_processes == 6
        assert went_on or met.ratio == first.measurement.comparisons[0].ratio, "the first processes are the same"
        played.append(met.n_processes)
    assert set(played) == {3, 6}


def test_a_recorded_confirmation_that_went_on_costs_what_its_first_processes_did(tmp_path: Path) -> None:
    pool = read_pool(SOFTMAX)
    kept = highest_is(ReplayDevice(SOFTMAX), CONFIRM)[0]
    top = kept.highest
    assert top.outcome.measurement is not None
    first, *others = top.outcome.measurement.comparisons
    six = replace(top.outcome.measurement, comparisons=(replace(first, n_processes=6), *others))
    outcome = replace(top.outcome, measurement=six, gpu_s=12.0, wall_s=14.0)
    long = replace(kept, rungs=(*kept.rungs[:-1], replace(top, outcome=outcome)))
    write_pool(tmp_path / "six.jsonl.gz", replace(pool, candidates=(pool.candidates[0], long)))
    device = ReplayDevice(tmp_path / "six.jsonl.gz")
    paid = device.evaluate(asked(long, CONFIRM, device.pool.candidates[0]), ignore).outcome
    assert (paid.gpu_s, paid.wall_s) == (6.0, 7.0)


def test_samples_arrive_for_the_live_pane(device: ReplayDevice) -> None:
    seen: list[LiveSample] = []
    one, other = highest_is(device, PROFILE)[:2]
    device.evaluate(asked(one, SCREEN, other), seen.append)
    assert len(seen) >= 3
    assert all(s.candidate == "c0001" and s.against == "c0099" and s.candidate_us > 0 for s in seen)


def test_raw_samples_by_process_are_drawn_as_they_are(device: ReplayDevice) -> None:
    pair = {"candidate": [5.0, 7.0, 6.0], "other": [9.0, 9.0]}
    taken = {"processes": [{"c0001": {"s": [pair, pair]}}, {"first": {"s": [pair]}}], "alone": {"s": [4.0]}}
    (samples,) = samples_by_process(taken)
    assert samples.processes == ((6.0, 6.0), (6.0,), (4.0,))
    one, other = highest_is(device, PROFILE)[:2]
    shape = "4096x16384"
    fake = ReplayDevice(SOFTMAX)
    rigged = tuple(
        replace(
            c, rungs=tuple(replace(r, samples=(replace(samples, shape=shape, processes=((us,),)),)) for r in c.rungs)
        )
        for c, us in ((one, 100.0), (other, 200.0))
    )
    fake.pool = replace(fake.pool, candidates=rigged)
    measured = fake.evaluate(asked(one, SCREEN, other), ignore).outcome.measurement
    assert measured is not None
    assert measured.comparisons[0].ratio == pytest.approx(2.0)


def test_simulated_time_passes_when_it_is_settled_and_only_once() -> None:
    device = ReplayDevice(SOFTMAX)
    one = highest_is(device, PROFILE)[0]
    device.evaluate(asked(one, MEASURE), ignore)
    assert device.time.now_s() == 0.0
    device.time.settle()
    paid_s = device.time.now_s()
    assert paid_s == pytest.approx(one.at(MEASURE).outcome.wall_s, abs=1e-5)  # type: ignore[union-attr]
    device.time.settle()
    device.time.owe(5.0)
    device.time.settle(counts=False)
    assert device.time.now_s() == paid_s


def test_another_problem_and_a_kernel_that_is_not_in_the_pool_are_refused(device: ReplayDevice) -> None:
    with pytest.raises(UsageError, match="this pool is of softmax, not of mat_vec"):
        device.problem(load_problem("mat_vec"))
    with pytest.raises(UsageError, match="the first kernel is not in the pool"):
        device.open(replace(device.pool.header.problem, kernel_source="def kernel_function(x): ..."))


def test_the_device_is_told_apart_by_its_name_and_labelled_measured(device: ReplayDevice) -> None:
    assert device.spec.name.startswith("replay of NVIDIA H200, pool ")
    assert device.spec.key == f"replay:{SOFTMAX}"
    assert device.spec.clock == "measured"


def request_for(
    device: ReplayDevice, parent: PoolCandidate | None, seen: frozenset[str] = frozenset()
) -> ProposalRequest:
    made_from = Candidate("c0001", parent.source_sha, (), parent.origin, parent.structure, "") if parent else None
    return ProposalRequest(
        device.pool.header.problem, None, device.spec, made_from, None, None, (), (), seen, Phase.NARROW, 4, 0
    )


def test_a_generator_proposes_only_its_own_recorded_children_of_that_parent(device: ReplayDevice) -> None:
    paid: list[float] = []
    generators = recorded_generators(("playbook", "rewrites"), device.pool, paid.append)
    parents = {c.parent for c in device.pool.candidates if c.parent}
    for parent in (None, *(device.pool.by_sha[sha] for sha in sorted(parents))):
        own = {c.source for c in device.pool.candidates if c.parent == (parent.source_sha if parent else None)}
        answer = generators["playbook"].propose(request_for(device, parent))
        assert 0 < len(answer) <= 4
        assert {p.source for p in answer} <= own
        assert all(p.origin.generator == "playbook" for p in answer)
        assert generators["rewrites"].propose(request_for(device, parent)) == ()
    assert paid[0] == dict(device.pool.header.ask_wall_s)["playbook"]


def test_what_was_seen_is_not_proposed_again(device: ReplayDevice) -> None:
    generator = recorded_generators(("playbook",), device.pool, lambda seconds: None)["playbook"]
    seen: set[str] = set()
    while answer := generator.propose(request_for(device, None, frozenset(seen))):
        fresh = {source_sha(p.source) for p in answer}
        assert not fresh & seen
        seen |= fresh
    assert len(seen) == sum(c.parent is None and c.origin.generator == "playbook" for c in device.pool.candidates)


def test_a_pool_without_anything_by_the_generators_named_is_refused(device: ReplayDevice) -> None:
    with pytest.raises(UsageError, match="the pool holds nothing by llm; it was made by playbook"):
        recorded_generators(("llm",), device.pool, lambda seconds: None)


def test_compiling_is_never_timed(device: ReplayDevice) -> None:
    outcome = device.evaluate(asked(highest_is(device, PROFILE)[0], COMPILE), ignore).outcome
    assert outcome.measurement is None
    assert outcome.resources
