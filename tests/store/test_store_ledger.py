"""What a person sees who has only git."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from kbtui.errors import EngineError
from store.ledger import RunBranch, read_source
from store.objects import ObjectStore
from store.record import create_run, open_run
from store.workspace import create_workspace

EVE = ("-c", "user.name=Eve", "-c", "user.email=e@x")


def test_first_parents_tell_the_story_in_words(told, git):
    workspace, run, _ = told
    story = git(workspace.git_dir, "log", "--first-parent", "--reverse", "--format=%s", f"runs/{run}").splitlines()
    assert story[0] == "start softmax on A100-SXM4-80GB: playbook + rewrites, budget 10m"
    assert story[1] == "problem opened: row_reduction, PyTorch eager 100.0 µs"
    assert "new c0003 online softmax 3 from c0001 (playbook online_softmax)" in story
    assert "r2 c0003 online softmax 3: 1.30× (1.28–1.32), promoted: +6 % over c0001" in story
    assert "r3 c0002 online softmax 2: rejected: relative L2 error 0.34 (wrong_values)" in story
    assert story[-2:] == ["command pause; lunch", "end: budget; 10m spent"]


def test_path_limited_log_shows_the_improvements_alone(told, git):
    workspace, run, _ = told
    log = git(
        workspace.git_dir, "log", "--first-parent", "-p", "--format=subject: %s", f"runs/{run}", "--", "kernel.py"
    )
    assert [line.split()[2] for line in log.splitlines() if line.startswith("subject: ")] == ["c0004", "c0003", "c0001"]
    assert "+line_4 = 4  # by candidate 4" in log


def test_tree_holds_the_best_verified_kernel(told, git, tmp_path, scene):
    workspace, run, commits = told
    git(workspace.git_dir, "worktree", "add", "--detach", str(tmp_path / "best"), f"runs/{run}")
    assert (tmp_path / "best" / "kernel.py").read_text() == scene.kernel(4, 3)
    objects = ObjectStore(workspace.git_dir)
    assert read_source(objects, commits[2]) == scene.kernel(2, 1)
    objects.close()


def test_blame_names_the_candidate_that_brought_a_line(told, git):
    workspace, run, commits = told
    blame = git(workspace.git_dir, "blame", "--abbrev=39", f"runs/{run}", "--", "kernel.py").splitlines()
    assert commits[4] in blame[4]
    assert commits[3] in blame[3]
    assert commits[1][:39] in blame[0]


def test_diff_between_candidates_is_their_change(told, git):
    workspace, _, commits = told
    diff = git(workspace.git_dir, "diff", commits[1], commits[2])
    assert "+line_2 = 2  # by candidate 2" in diff
    assert diff.count("\n+") == 2  # the header and the line


def test_candidates_are_found_by_their_id_and_carry_trailers(told, git):
    workspace, run, commits = told
    assert git(workspace.git_dir, "rev-parse", f"runs/{run}^{{/^c0003 }}").strip() == commits[3]
    trailers = git(workspace.git_dir, "log", "-1", "--format=%(trailers)", commits[3]).strip().splitlines()
    assert trailers == [
        "Generator: playbook",
        "Operator: online_softmax",
        "Hint: several_rows",
        "Candidate: c0003",
        f"Run: {run}",
    ]


def test_event_message_holds_the_event_as_json(told, git):
    workspace, run, _ = told
    body = git(workspace.git_dir, "log", "-1", "--first-parent", "--grep=^r2 c0003", "--format=%b", f"runs/{run}")
    plain = json.loads(body[: body.rindex("}}") + 2])
    assert plain["event"]["type"] == "RungCompleted"
    assert plain["event"]["score"] == 1.3


def test_lineage_graph_is_the_candidates_own(told, git):
    workspace, _, commits = told
    assert git(workspace.git_dir, "log", "--format=%H", commits[4]).split() == [commits[4], commits[3], commits[1]]
    assert "c0004" in git(workspace.git_dir, "log", "--graph", "--oneline", "runs/softmax-1")


def test_bisect_along_a_lineage_finds_the_candidate_that_changed_a_line(told, git, tmp_path):
    workspace, _, commits = told
    git(workspace.git_dir, "worktree", "add", "--detach", str(tmp_path / "bisect"), commits[4])
    git(tmp_path / "bisect", "bisect", "start", commits[4], commits[1])
    script = ["sh", "-c", "! grep -q 'by candidate 3' kernel.py"]
    assert f"{commits[3]} is the first bad commit" in git(tmp_path / "bisect", "bisect", "run", *script)


def test_repository_is_sound_and_gc_loses_nothing(told, git, scene):
    workspace, run, commits = told
    git(workspace.git_dir, "fsck", "--strict", "--no-dangling")
    git(workspace.git_dir, "gc", "--prune=now", "--quiet")
    git(workspace.git_dir, "fsck", "--strict")
    ledger = open_run(workspace, run)
    assert {n: ledger.source(oid) for n, oid in commits.items()} == {n: scene.kernel(n, p) for n, p, _ in scene.LINEAGE}
    assert ledger._branch.objects._batch is not None
    process = ledger._branch.objects._batch
    ledger.close()
    assert process.returncode is not None


def test_a_git_that_was_killed_between_two_reads_is_started_again(told, git, scene):
    workspace, _, commits = told
    git(workspace.git_dir, "gc", "--prune=now", "--quiet")
    objects = ObjectStore(workspace.git_dir)
    for signal_number in (signal.SIGKILL, signal.SIGTERM):
        assert read_source(objects, commits[1]) == scene.kernel(1, ())
        objects._batch.send_signal(signal_number)
        objects._batch.wait()
    assert read_source(objects, commits[2]) == scene.kernel(*scene.LINEAGE[1][:2])
    objects.close()


def test_a_repository_that_went_away_is_told_in_one_line(told, git):
    workspace, _, commits = told
    git(workspace.git_dir, "gc", "--prune=now", "--quiet")
    objects = ObjectStore(workspace.git_dir)
    workspace.git_dir.rename(workspace.git_dir.with_name("gone.git"))
    with pytest.raises(EngineError, match=r"there is no repository at .*/kernels.git any more; put it back"):
        objects.read(commits[1])
    objects.close()


def test_one_push_takes_the_run_and_its_candidates(told, git, tmp_path):
    workspace, run, commits = told
    git(tmp_path, "init", "--bare", "--quiet", "elsewhere.git")
    git(workspace.git_dir, "push", "--quiet", str(tmp_path / "elsewhere.git"), f"runs/{run}")
    for oid in commits.values():
        git(tmp_path / "elsewhere.git", "cat-file", "-e", f"{oid}:kernel.py")


def test_clone_shows_the_readme_and_its_commands_work(told, git, tmp_path):
    workspace, run, _ = told
    git(tmp_path, "clone", "--quiet", str(workspace.git_dir), "clone")
    text = (tmp_path / "clone" / "README.md").read_text()
    commands = [line.strip() for line in text.splitlines() if line.startswith("    git ")]
    runnable = [c.split("    ")[0] for c in commands if "push" not in c and "worktree" not in c]
    assert len(commands) >= 12
    for command in runnable:
        line = command.replace("runs/X", f"runs/{run}").replace("c0031", "c0003")
        done = subprocess.run(line, shell=True, cwd=workspace.git_dir, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}: {done.stderr}"
        assert done.stdout, line


def test_same_candidate_gets_the_same_id_in_any_repository(tmp_path, scene):
    ids = []
    for name in ("a", "b"):
        ledger = create_run(create_workspace(tmp_path / name), scene.run_started(), now=scene.Ticking())
        ids.append(scene.tell(ledger))
        ledger.close()
    assert ids[0] == ids[1]


def test_foreign_commit_on_the_branch_stops_an_append_and_is_named(workspace, git, tmp_path, scene):
    ledger = create_run(workspace, scene.run_started())
    commits: dict[int, str] = {}
    scene.admit(ledger, 1, None, commits)
    git(workspace.git_dir, "worktree", "add", "--quiet", str(tmp_path / "wt"), f"runs/{ledger.run}")
    git(tmp_path / "wt", *EVE, "commit", "--quiet", "--allow-empty", "-m", "tweak")
    foreign = git(tmp_path / "wt", "rev-parse", "HEAD").strip()
    with pytest.raises(EngineError, match=rf"{foreign[:12]} 'tweak' by Eve <e@x> .* is not kbtui's; .*resume"):
        scene.complete(ledger, 1, True, commits[1])
    ledger.close()
    assert git(workspace.git_dir, "rev-parse", f"runs/{ledger.run}").strip() == foreign


@pytest.mark.parametrize("message", ["tweak", 'tweak\n\n{"seq":14,"at":"x","event":{\n}}\n\nRun: softmax-1'])
def test_foreign_commit_on_the_branch_stops_a_resume_and_is_named(told, git, message):
    workspace, run, _ = told
    tip = git(workspace.git_dir, "rev-parse", f"runs/{run}").strip()
    who = ["-c", "user.name=kbtui", "-c", "user.email=kbtui@localhost"]
    foreign = git(workspace.git_dir, *who, "commit-tree", "-p", tip, "-m", message, f"{tip}^{{tree}}").strip()
    git(workspace.git_dir, "update-ref", f"refs/heads/runs/{run}", foreign)
    with pytest.raises(EngineError, match=f"{foreign[:12]} 'tweak'"):
        open_run(workspace, run)


def test_event_reworded_by_someone_stops_a_resume_and_is_named(told, git):
    workspace, run, _ = told
    message = git(workspace.git_dir, "log", "-1", "--format=%B", f"runs/{run}").replace('"wall_s":8.0', '"wall_s":1.0')
    reworded = git(workspace.git_dir, *EVE, "commit-tree", "-p", f"runs/{run}~1", "-m", message, f"runs/{run}^{{tree}}")
    git(workspace.git_dir, "update-ref", f"refs/heads/runs/{run}", reworded.strip())
    with pytest.raises(EngineError, match=f"{reworded[:12]} 'end: budget; 10m spent' by Eve"):
        open_run(workspace, run)


def test_branch_in_the_way_is_named(tmp_path, git, scene):
    git(tmp_path, "init", "--quiet", "theirs")
    git(tmp_path / "theirs", *EVE, "commit", "--quiet", "--allow-empty", "-m", "one")
    git(tmp_path / "theirs", "branch", "runs")
    workspace = create_workspace(tmp_path / "ws", repo=tmp_path / "theirs")
    with pytest.raises(EngineError, match="branch named 'runs' in the way; rename"):
        create_run(workspace, scene.run_started())


def test_lock_left_by_a_killed_writer_is_taken_over(told, scene):
    workspace, run, _ = told
    lock = Path(workspace.git_dir / "refs" / "heads" / "runs" / f"{run}.lock")
    lock.touch()
    ledger = open_run(workspace, run)
    scene.complete(ledger, 1, False, "")
    ledger.close()
    assert not lock.exists()


def test_objects_cut_short_by_a_power_loss_are_written_again(workspace, scene):
    objects = ObjectStore(workspace.git_dir)
    content = bytes(range(256))
    oid = objects.write(b"blob", content)
    objects.close()
    path = workspace.git_dir / "objects" / oid[:2] / oid[2:]
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-40])
    again = ObjectStore(workspace.git_dir)
    with pytest.raises(EngineError, match=f"{oid} is missing or damaged"):
        again.read(oid)
    sound = again.write(b"blob", b"sound")
    with pytest.raises(EngineError, match=f"{oid} is missing or damaged"):
        list(again.read_many([sound, oid, sound]))
    assert again.write(b"blob", content) == oid
    assert again.read(oid) == content
    again.close()


def test_run_branch_of_a_new_name_stands_nowhere(workspace):
    objects = ObjectStore(workspace.git_dir)
    branch = RunBranch(objects, "nothing-1")
    assert branch.tip is None
    assert list(branch.entries()) == []
    objects.close()
