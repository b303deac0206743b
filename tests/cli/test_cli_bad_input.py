"""Whatever is wrong with what a user gives: one line on stderr, no data, the documented exit code, nothing begun."""

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from kbtui.commands.leave import import_runs
from kbtui.evaluation.devices import DEFAULT_MODEL, resolve_auto
from kbtui.pool_file import read_pool, write_pool
from tests.fakes.commands import ROOT, kbtui, kbtui_forked, one_line
from tests.fakes.ollama_server import FakeOllama, serve

SOFTMAX = ROOT / "sample_kernels" / "softmax"
MODEL = ("--device", "model:a100", "--candidates", "2")
#: The same fault told by the other ways to run an engine is for `make test-full`.
SLOW = pytest.mark.slow


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder of bad files and problems."""
    files: dict[str, bytes] = {
        "empty.py": b"",
        "syntax.py": b"def kernel_function(x:\n",
        "other.py": b"def other(x):\n    return x\n",
        "binary.py": b"\xff\xfe\x00bad",
        "nul.py": b"def kernel_function(x):\n    return x\n\x00",
        "deep.py": b"x = " + b"-" * 100_000 + b"1\n",
        "not_a_problem.py": b"class Model:\n    pass\n",
        "a_file": b"hello",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder.py").mkdir()
    for name, broken in (("without_entry", "other.py"), ("with_syntax", "syntax.py"), ("with_nothing", "empty.py")):
        shutil.copytree(SOFTMAX, tmp_path / name)
        shutil.copy(tmp_path / broken, tmp_path / name / "kernel.py")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("run", "softmaxx"), 2, "did you mean softmax?"),
        (("run", ""), 2, "no problem is named"),
        (("run", "."), 2, "has no problem.toml"),
        (("run", "not_a_problem.py"), 2, "is not a problem"),
        (("run", "without_entry"), 2, "has no kernel_function"),
        (("run", "with_syntax"), 2, "is not Python at line 1"),
        (("run", "with_nothing"), 2, "has no kernel_function"),
        (("run", "softmax", "--kernel", "nope.py"), 2, "No such file"),
        (("run", "softmax", "--kernel", "folder.py"), 2, "Is a directory"),
        (("run", "softmax", "--kernel", "empty.py"), 2, "has no kernel_function"),
        (("run", "softmax", "--kernel", "other.py"), 2, "has no kernel_function"),
        (("run", "softmax", "--kernel", "syntax.py"), 2, "is not Python at line 1"),
        (("run", "softmax", "--kernel", "binary.py"), 2, "is not text"),
        (("run", "softmax", "--kernel", "nul.py"), 2, "is not Python"),
        (("run", "softmax", "--kernel", "deep.py"), 2, "is not Python"),
        (("run", "softmax", "--device", "nonsense"), 2, "use auto, cuda:N"),
        (("run", "softmax", "--budget", "soon"), 2, "write it as 90s"),
        (("run", "softmax", "--budget", "-5m"), 2, "write it as 90s"),
        (("run", "softmax", "--budget", "0"), 2, "write it as 90s"),
        (("run", "softmax", "--budget", "9" * 400), 2, "write it as 90s"),
        (("run", "softmax", "--gpu-budget", "x"), 2, "write it as 90s"),
        (("run", "softmax", "--gpu-budget", ""), 2, "write it as 90s"),
        (("run", "softmax", "--budget", ""), 2, "write it as 90s"),
        (("resume", "--gpu-budget", ""), 2, "write it as 90s"),
        (("resume", "--budget", ""), 2, "write it as 90s"),
        (("run", "softmax", "--candidates", "0"), 2, "greater than or equal to 1"),
        (("run", "softmax", "--seed", "abc"), 2, "valid integer"),
        (("run", "softmax", "--generator", "playbok"), 2, "did you mean playbook?"),
        (("run", "softmax", "--generator", "llm"), 2, "--model NAME"),
        (("run", "softmax", "--child-entry", "x"), 2, "parent"),
        (("run", "softmax", "--theme", "nope"), 2, "no theme is named 'nope'"),
        (("run", "softmax", "-w", "a_file"), 2, "is not a folder"),
        (("run", "softmax", "-w", "a_file/x"), 2, "Not a directory"),
        (("run", "softmax", "--repo", "with_syntax"), 2, "is not a git repository"),
        (("run", "softmax", "--repo", "nope"), 2, "is not a folder"),
        (("run",), 2, "Missing argument"),
        (("rum",), 2, "No such command"),
        (("run", "softmax", "--bugdet", "1m"), 2, "No such option"),
        (("verify", "softmaxx"), 2, "did you mean softmax?"),
        (("verify", "without_entry"), 2, "has no kernel_function"),
        (("ls", "-w", "nowhere"), 2, "no workspace at"),
        (("status", "-w", "nowhere"), 2, "no workspace at"),
        (("resume", "-w", "nowhere"), 2, "no workspace at"),
        (("stop", "-w", "nowhere"), 2, "no workspace at"),
        (("reindex", "-w", "nowhere"), 2, "no workspace at"),
        (("submit", "other.py", "-w", "nowhere"), 2, "no workspace at"),
        (("ls", "-w", "a_file"), 2, "is not a folder"),
        (("attach",), 2, "needs a terminal"),
        ((), 2, "needs a terminal"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_one_line_and_the_code(place: Path, words: tuple[str, ...], code: int, says: str) -> None:
    more = ("--headless",) if words[:1] == ("run",) and "--theme" not in words else ()
    done = kbtui_forked(*words, *more, cwd=place)
    assert says in one_line(done)
    assert done.returncode == code


REPLAY = ("--device", "replay:" + str(next((ROOT / "benchmarks/pools").glob("softmax-*-full.jsonl.gz"))))
REPLAYED = [("run", "--headless"), ("verify",), ("verify", "--explain"), ("bench",), ("profile",)]


@pytest.mark.parametrize("words", REPLAYED, ids=" ".join)
def test_a_pool_says_nothing_of_another_problem_though_it_knows_the_kernel(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    other = tmp_path / "half_softmax"
    shutil.copytree(SOFTMAX, other)
    declared = (other / "problem.toml").read_text()
    (other / "problem.toml").write_text(declared.replace('name = "softmax"', 'name = "half_softmax"'))
    done = kbtui_forked(words[0], other, *words[1:], "--kernel", SOFTMAX / "kernel.py", *REPLAY, cwd=tmp_path)
    assert done.stderr.splitlines() == ["kbtui: this pool is of softmax, not of half_softmax; name the pool's problem"]
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("words", REPLAYED, ids=" ".join)
def test_a_replay_of_a_problem_that_has_changed_says_whose_results_it_tells(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    changed = tmp_path / "softmax"
    shutil.copytree(SOFTMAX, changed)
    reference = (changed / "reference.py").read_text()
    (changed / "reference.py").write_text(reference.replace("return torch.", "return 0.5 * torch."))
    more = ("--candidates", "1") if words[0] == "run" else ()
    done = kbtui_forked(words[0], changed, *words[1:], "--kernel", SOFTMAX / "kernel.py", *more, *REPLAY, cwd=tmp_path)
    assert "is not as it was recorded: what follows is about the pool's own softmax" in done.stderr


def test_what_a_replay_explains_of_the_gate_agrees_with_its_verdict(tmp_path: Path) -> None:
    done = kbtui_forked("verify", "softmax", "--explain", "--kernel", SOFTMAX / "kernel.py", *REPLAY, cwd=tmp_path)
    *_, verdict = done.stdout.splitlines()
    stages = [line for line in done.stdout.splitlines() if line.startswith("stage ")]
    assert verdict.startswith("verified by gpu on replay")
    assert stages[0].endswith(": verified")
    assert [line.endswith(": verified by gpu") for line in stages[1:]] == [True] * 3
    assert "interpreter" not in done.stdout
    planned = kbtui_forked("verify", "softmax", "--explain", *REPLAY, cwd=tmp_path).stdout
    assert "proof gpu" in planned


def test_a_kernel_that_a_pool_does_not_know_is_not_left_out_of_a_replay(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def kernel_function(x):\n    return x\n")
    done = kbtui_forked("run", "softmax", "--headless", "--kernel", "mine.py", *REPLAY, cwd=tmp_path)
    assert "the first kernel is not in the pool" in done.stderr
    assert done.returncode == 2


def test_a_replay_begins_with_the_kernel_that_is_named_and_can_be_resumed(tmp_path: Path) -> None:
    known = read_pool(Path(REPLAY[1].removeprefix("replay:"))).candidates[1].source
    (tmp_path / "mine.py").write_text(known)
    done = kbtui_forked(
        "run", "softmax", *REPLAY, "--headless", "--kernel", "mine.py", "--candidates", "1", cwd=tmp_path
    )
    assert done.returncode == 1, done.stderr
    assert json.loads(kbtui_forked("show", "first", "--json", cwd=tmp_path).stdout)["source"] == known
    again = kbtui_forked("resume", "--headless", "--candidates", "1", cwd=tmp_path)
    assert "2 candidates" in again.stderr


def test_a_run_of_a_pool_that_is_another_now_blames_the_pool_and_not_the_problem(tmp_path: Path) -> None:
    played, recorded = tmp_path / "pool", read_pool(Path(REPLAY[1].removeprefix("replay:")))
    write_pool(played, recorded)
    kbtui_forked("run", "softmax", "--device", f"replay:{played}", "--headless", "--candidates", "1", cwd=tmp_path)
    problem = replace(recorded.header.problem, reference_source="# another\n")
    write_pool(played, replace(recorded, header=replace(recorded.header, problem=problem)))
    done = kbtui_forked("resume", "--headless", "--candidates", "1", cwd=tmp_path)
    assert "was measured on replay of NVIDIA H200, pool" in one_line(done)
    assert done.returncode == 2


@pytest.mark.parametrize(
    "how", ["--detach", pytest.param("--headless", marks=SLOW), pytest.param("--json", marks=SLOW)]
)
def test_a_reference_that_raises_is_told_however_the_engine_runs(tmp_path: Path, how: str) -> None:
    problem, workspace = tmp_path / "a problem", tmp_path / "runs"
    shutil.copytree(SOFTMAX, problem)
    (problem / "reference.py").write_text("raise RuntimeError('boom\\nand more')\n")
    refused = kbtui("run", problem, how, *MODEL, "-w", workspace)
    assert "raised RuntimeError: boom" in one_line(refused)
    assert refused.returncode == 2
    assert "no run" in kbtui("status", "-w", workspace).stderr
    done = kbtui("run", problem, how, "--unvetted", *MODEL, "-w", workspace)
    assert "raised RuntimeError: boom" in one_line(done)
    assert done.returncode == 2
    assert "failed" in kbtui("status", "-w", workspace).stdout


def test_a_kernelbench_file_that_raises_is_told(tmp_path: Path) -> None:
    source = (ROOT / "tests/data/kernelbench/row_softmax.py").read_text()
    (tmp_path / "kb.py").write_text(source + "\nraise ValueError('no weights here')\n")
    done = kbtui("verify", tmp_path / "kb.py", "--kernel", SOFTMAX / "kernel.py", "--json", *MODEL[:2], cwd=tmp_path)
    found = json.loads(done.stdout)
    assert (found["verdict"], found["reason"]) == ("refused", "reference_raises")
    assert "ValueError: no weights here" in found["detail"]
    assert done.returncode == 2


@pytest.mark.parametrize("how", ["--headless", pytest.param("--detach", marks=SLOW)])
def test_a_gpu_that_is_not_there(tmp_path: Path, how: str) -> None:
    done = kbtui_forked("run", "softmax", how, "--device", "cuda:7", "-w", tmp_path / "runs")
    assert "cuda:7 cannot be used" in one_line(done)
    assert done.returncode == 3


@pytest.mark.skipif(resolve_auto() != DEFAULT_MODEL, reason="there is a GPU, on which it may go on")
def test_a_run_of_a_gpu_is_not_advised_to_go_on_under_a_model(tmp_path: Path) -> None:
    import_runs(tmp_path / "runs", ROOT / "benchmarks/results/h200-2026-11-30/softmax.bundle", ())
    told = one_line(kbtui_forked("resume", "--headless", "--budget", "9s", "-w", tmp_path / "runs"))
    assert "a run on NVIDIA H200 goes on where there is one" in told
    assert "--device" not in told


@pytest.mark.parametrize("how", ["--headless", pytest.param("--detach", marks=SLOW)])
def test_a_model_is_asked_for_before_the_run_begins(tmp_path: Path, how: str) -> None:
    words = ("run", "softmax", how, *MODEL, "-w", tmp_path / "runs", "--model", "coder:70b")
    absent = kbtui_forked(*words, env={"KBTUI_OLLAMA_HOST": "http://127.0.0.1:9"})
    assert "no Ollama server answers" in one_line(absent)
    assert absent.returncode == 3
    with serve(FakeOllama(models=("coder:7b",))) as fake:
        unknown = kbtui_forked(*words, env={"KBTUI_OLLAMA_HOST": fake.host})
        assert fake.requests == []
    assert "`ollama pull coder:70b`; it has coder:7b" in one_line(unknown)
    assert unknown.returncode == 2
    assert "no run" in kbtui_forked("ls", "-w", tmp_path / "runs").stderr


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'budgett = "3m"\n', "did you mean budget?"),
        (b"budget = \n", "mend or remove it"),
        (b"\xff\xfe", "mend or remove it"),
        (b'budget = "soon"\n', "write it as 90s"),
    ],
)
def test_configuration_that_cannot_be_used(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "kbtui").mkdir()
    (tmp_path / "kbtui" / "config.toml").write_bytes(content)
    done = kbtui_forked("run", "softmax", "--headless", cwd=tmp_path, env={"XDG_CONFIG_HOME": str(tmp_path)})
    assert says in one_line(done)
    assert done.returncode == 2


def test_a_variable_that_is_nearly_a_setting_is_named(tmp_path: Path) -> None:
    done = kbtui_forked("config", cwd=tmp_path, env={"KBTUI_BUDGETT": "3m"})
    assert "did you mean KBTUI_BUDGET?" in one_line(done)
    assert done.returncode == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_workspace_that_cannot_be_written(tmp_path: Path, finished: Path) -> None:
    place = tmp_path / "read-only"
    shutil.copytree(finished, place)
    (tmp_path / "mine.py").write_text((SOFTMAX / "kernel.py").read_text() + "\n# mine\n")
    if subprocess.run(["mount", "--bind", "-o", "ro", place, place], capture_output=True, check=False).returncode:
        pytest.skip("mounting is not permitted")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", place], check=True)
        for words in (
            ("run", "softmax", "--headless", *MODEL),
            ("run", "softmax", "--detach", *MODEL),
            ("resume", "--headless", "--candidates", "1"),
            ("verify", "softmax", *MODEL[:2]),
            ("submit", tmp_path / "mine.py"),
            ("reindex",),
            ("status",),
        ):
            done = kbtui_forked(*words, "-w", place)
            assert "Traceback" not in done.stderr
            allowed = {"status": (0, 2), "verify": (2, 3)}.get(words[0], (2,))
            assert done.returncode in allowed, (words, done)
            if done.returncode and words[0] != "verify":  # the problem's vetting needs no place, and is told first
                one_line(done)
    finally:
        subprocess.run(["umount", place], check=True)
