"""The playbook proposes every structure first, then neighbours, and is deterministic."""

from hypothesis import given, settings
from hypothesis import strategies as st

from hints import load_hints
from kbtui.domain.candidate import source_sha
from kbtui.domain.profile import Diagnosis
from kbtui.domain.proposal import Phase
from kbtui.generation.playbook import Playbook, load_entries
from kbtui.generation.playbook.constants import read_constants, set_constants
from kbtui.generation.playbook.entry import families

ENTRIES = [e for f in families() for e in load_entries(f)]


def test_coarse_rounds_propose_every_structure_once_before_any_twice(request_for):
    entries = load_entries("row_softmax")
    proposals = Playbook().propose(request_for("softmax", limit=len(entries) + 3))

    first = [p.structure for p in proposals[: len(entries)]]
    assert sorted(first) == sorted(e.structure for e in entries)
    assert len(proposals) == len(entries) + 3


def test_a_hint_that_a_diagnosis_chose_moves_its_structures_to_the_front(request_for):
    split = tuple(h for h in load_hints() if h.id == "split_the_row")
    few = Diagnosis("Too few programs.", (), "4096x16384", 0.0, 0.0, "test")

    proposals = Playbook().propose(request_for("softmax", hints=split, diagnosis=few, limit=1))

    assert proposals[0].origin.operator == "softmax_split_row"
    assert proposals[0].origin.hint == "split_the_row"


def test_hints_that_no_diagnosis_chose_leave_the_order_to_the_sizes(request_for):
    split = tuple(h for h in load_hints() if h.id == "split_the_row")

    assert Playbook().propose(request_for("softmax", hints=split)) == Playbook().propose(request_for("softmax"))


def test_a_persons_words_move_a_structure_to_the_front(request_for):
    proposals = Playbook().propose(request_for("softmax", user_hints=("try a persistent kernel",), limit=1))

    assert proposals[0].origin.operator == "softmax_persistent"


def test_narrow_rounds_change_one_parameter_of_the_parent_by_one_step(request_for):
    entry = next(e for e in load_entries("row_softmax") if e.name == "softmax_online_tiles")
    parent = request_for("softmax").problem.spec
    source = entry.instantiate(entry.defaults() | {"TILE": 4096}, request_for("softmax").device, parent)

    proposals = Playbook().propose(
        request_for("softmax", source=source, structure=entry.structure, phase=Phase.NARROW, limit=4)
    )

    grid = dict(entry.grid)
    for proposal in proposals:
        now = entry.params_of(proposal.source)
        changed = {n: (v, now[n]) for n, v in entry.params_of(source).items() if now[n] != v}
        assert len(changed) == 1
        ((name, (before, after)),) = changed.items()
        assert abs(grid[name].index(before) - grid[name].index(after)) == 1


def test_narrowing_keeps_what_a_rewrite_did_to_the_parent(request_for):
    entry = load_entries("row_softmax")[0]
    request = request_for("softmax")
    source = entry.instantiate(entry.defaults(), request.device, request.problem.spec).replace("tl.exp(", "tl.exp2(")

    proposals = Playbook().propose(
        request_for("softmax", source=source, structure=entry.structure, phase=Phase.NARROW, limit=2)
    )

    assert all("tl.exp2(" in p.source for p in proposals)


def test_an_unknown_family_has_no_proposals(request_for):
    assert Playbook().propose(request_for("softmax", family="fft")) == ()
    assert Playbook().propose(request_for("softmax", family=None)) == ()


def test_asked_again_and_again_it_repeats_nothing_and_comes_to_an_end(request_for):
    seen: set[str] = set()
    for _ in range(200):
        proposals = Playbook().propose(request_for("mat_vec", seen=frozenset(seen), limit=16))
        shas = {source_sha(p.source) for p in proposals}
        assert not shas & seen
        if not proposals:
            break
        seen |= shas
    else:
        raise AssertionError("never exhausted")
    assert len(seen) > 100


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), limit=st.integers(0, 30))
def test_the_same_request_gives_the_same_proposals(request_for_factory, seed, limit):
    request = request_for_factory("softmax", seed=seed, limit=limit)

    once = Playbook().propose(request)

    assert once == Playbook().propose(request)
    assert len(once) <= limit
    assert len({p.source for p in once}) == len(once)


def test_every_entry_has_defaults_on_its_grid_and_a_summary_that_reads():
    for entry in ENTRIES:
        defaults = entry.defaults()
        assert all(defaults[name] in values for name, values in entry.grid), entry.name
        assert "{" not in entry.summarise(defaults)
        assert len({e.structure for e in ENTRIES if e.name == entry.name}) == 1
    assert len({e.structure for e in ENTRIES}) == len(ENTRIES)


def test_what_is_kept_out_says_why_and_is_never_proposed(request_for):
    keepers = [entry for entry in ENTRIES if entry.kept_out]
    assert "conv_implicit_product" in [entry.name for entry in keepers]
    for entry in keepers:
        grid = dict(entry.grid)
        assert entry.why_kept_out(entry.defaults()) is None
        for out in entry.kept_out:
            assert len(out.reason) > 40
            assert all(set(values) <= set(grid[name]) for name, values in out.values), entry.name

    proposals = Playbook().propose(request_for("group_conv", limit=2000))
    made = [p for p in proposals if p.origin.operator == "conv_implicit_product"]
    wide = {(c["BLOCK_K"], c["NUM_WARPS"]) for c in (read_constants(p.source) for p in made)}
    assert {(32, 8), (64, 4), (128, 4)} <= wide
    assert not {(64, 8), (128, 8)} & wide


def test_narrowing_a_parent_keeps_out_what_the_entry_does(request_for):
    entry = next(e for e in load_entries("conv") if e.name == "conv_implicit_product")
    request = request_for("group_conv")
    source = entry.instantiate(entry.defaults() | {"NUM_WARPS": 8}, request.device, request.problem.spec)

    proposals = Playbook().propose(
        request_for("group_conv", source=source, structure=entry.structure, phase=Phase.NARROW, limit=2000)
    )

    points = [entry.params_of(p.source) for p in proposals if p.origin.operator == entry.name]
    assert any(point["BLOCK_K"] == 16 for point in points)
    assert [point for point in points if entry.why_kept_out(point)] == []


def test_no_two_instantiations_near_the_defaults_read_alike():
    for entry in ENTRIES:
        near = [entry.defaults() | {name: value} for name, values in entry.grid for value in values]
        told = {entry.summarise(params): params for params in near}
        assert len(told) == len({tuple(params.items()) for params in near}), entry.name


def test_one_of_a_thing_is_singular_in_a_summary():
    entry = next(e for e in ENTRIES if e.name == "matvec_split_k")
    told = entry.summarise(entry.defaults() | {"PROGRAMS_PER_SM": 1, "ROWS": 1, "STAGES": 1})
    assert "1 program an SM" in told
    assert "1 row by" in told


def test_an_instantiation_takes_the_devices_and_the_problems_numbers(request_for):
    request = request_for("rms_norm")
    persistent = next(e for e in load_entries("channel_rms_norm") if e.name == "channel_rms_persistent")

    constants = read_constants(persistent.instantiate({"STAGES": 3}, request.device, request.problem.spec))

    assert (constants["N_SMS"], constants["STAGES"], constants["EPS"]) == (108, 3, 1e-5)


@given(st.dictionaries(st.sampled_from(["A", "B_2", "C"]), st.integers(-5, 5) | st.sampled_from(["", "x y"])))
def test_constants_are_read_back_as_they_were_set(values):
    source = 'A = 1  # why\nB_2 = "t"\nC = 2.5\n\n\ndef f():\n    A = 3\n    return A\n'

    changed = set_constants(source, values)

    assert read_constants(changed) == {"A": 1, "B_2": "t", "C": 2.5} | values
    assert changed.endswith("    A = 3\n    return A\n")
    assert "# why" in changed
