from pathlib import Path

import pytest

from kbtui.doctor_probes.check import State
from kbtui.doctor_probes.confinement import judge_sandbox
from kbtui.doctor_probes.gpu import judge_counters, judge_cuda, judge_gpu
from kbtui.doctor_probes.llm import judge_ollama
from kbtui.doctor_probes.python import judge_compiler, judge_cores, judge_memory, judge_packages
from kbtui.doctor_probes.storage import judge_git, judge_workspace
from kbtui.doctor_probes.terminal import judge_clipboard, judge_terminal
from kbtui.evaluation.process.sandbox import Protection

PLAIN_ROOT = "CapEff:\t00000000a80425fb\n"
FULL_ROOT = "CapEff:\t000001ffffffffff\n"
USER = "CapEff:\t0000000000000000\n"
GIB = 1 << 30
GPU = {"name": "NVIDIA H200", "memory": 141 * GIB, "n_others": 0}


@pytest.mark.parametrize(
    ("params", "status", "state", "word"),
    [
        ("RmProfilingAdminOnly: 0\n", USER, State.OK, "every user"),
        ("RmProfilingAdminOnly: 1\n", FULL_ROOT, State.OK, "privileged"),
        ("RmProfilingAdminOnly: 1\n", PLAIN_ROOT, State.WARN, "lacks CAP_SYS_ADMIN"),
        ("RmProfilingAdminOnly: 1\n", USER, State.WARN, "lacks CAP_SYS_ADMIN"),
        (None, USER, State.WARN, "cannot be read"),
        (None, "", State.WARN, "cannot be read"),
    ],
)
def test_counters_are_open_to_all_or_to_the_privileged_and_the_reason_is_said(params, status, state, word):
    check = judge_counters(params, status, has_gpu=True)
    assert check.state is state
    assert word in check.found
    assert bool(check.advice) == (state is State.WARN)


def test_counters_do_not_matter_without_a_gpu():
    assert judge_counters("RmProfilingAdminOnly: 1", USER, has_gpu=False).state is State.ABSENT


def test_a_shared_gpu_is_a_warning_and_a_free_one_is_not():
    free = judge_gpu({"driver": "580.1", "gpus": [GPU]})
    assert (free.state, free.found) == (State.OK, "cuda:0 NVIDIA H200, 141 GiB; driver 580.1")
    assert judge_gpu({"driver": "580.1", "gpus": [GPU, GPU | {"n_others": 2}]}).state is State.WARN


def test_a_machine_without_a_gpu_is_told_of_the_model():
    assert "model:a100" in judge_gpu({"driver": "580.1", "gpus": []}).advice


@pytest.mark.parametrize(
    ("answer", "state", "word"),
    [
        ({"build": "13.0", "works": True, "arch": "9.0"}, State.OK, "9.0"),
        ({"build": None, "works": False, "arch": None}, State.FAIL, "CPU build"),
        ({"build": "13.0", "works": False, "arch": None}, State.FAIL, "sees no GPU"),
        ({"error": "no answer within 60 s"}, State.FAIL, "no answer"),
    ],
)
def test_cuda_fails_with_what_is_wrong_with_it(answer, state, word):
    check = judge_cuda(answer)
    assert check.state is state
    assert word in check.found


def test_packages_that_are_missing_or_do_not_go_together_are_named():
    good = {"torch": "2.13.0+cpu", "triton": "3.6.0", "numpy": "2.3.5"}
    assert judge_packages(good).state is State.OK
    assert "numpy<2.4" in judge_packages(good | {"numpy": "2.4.1"}).advice
    assert judge_packages(good | {"triton": "3.5.1"}).state is State.FAIL
    assert judge_packages(good | {"triton": "3.7.0", "numpy": "2.4.1"}).state is State.OK
    missing = judge_packages(good | {"torch": None})
    assert (missing.state, missing.found) == (State.FAIL, "missing: torch")


@pytest.mark.parametrize(
    ("n_cores", "found", "state"),
    [(2.0, "2 usable", State.OK), (1.5, "1.5 usable", State.WARN), (64.0, "64 usable", State.OK)],
)
def test_fewer_than_two_cores_are_a_warning(n_cores, found, state):
    check = judge_cores(n_cores)
    assert (check.found, check.state) == (found, state)


def test_little_memory_is_a_warning():
    assert judge_memory("MemTotal: 8000000 kB\nMemAvailable: 1000000 kB\n").state is State.WARN
    assert judge_memory("MemTotal: 8000000 kB\nMemAvailable: 7000000 kB\n").state is State.OK


def test_a_compiler_is_needed_only_where_kernels_are_launched():
    assert judge_compiler(None, True, has_gpu=True).state is State.FAIL
    assert judge_compiler(None, True, has_gpu=False).state is State.ABSENT
    assert "python3-dev" in judge_compiler("gcc", False, has_gpu=True).advice
    assert judge_compiler("gcc", True, has_gpu=True).state is State.OK


def test_git_missing_fails_and_git_old_warns():
    assert judge_git(None).state is State.FAIL
    assert judge_git("git version 2.17.1").state is State.WARN
    assert judge_git("git version 2.39.5 (Apple Git-154)").state is State.OK


@pytest.mark.parametrize(
    ("kind", "free_bytes", "writable", "state"),
    [
        ("ext4", 50 * GIB, True, State.OK),
        ("ext4", GIB // 2, True, State.WARN),
        ("nfs4", 50 * GIB, True, State.FAIL),
        ("fuse.sshfs", 50 * GIB, True, State.FAIL),
        ("ext4", 50 * GIB, False, State.FAIL),
    ],
)
def test_a_workspace_must_be_writable_local_and_have_room(kind, free_bytes, writable, state):
    assert judge_workspace(Path("/w"), kind, free_bytes, writable).state is state


def test_a_sandbox_layer_that_is_missing_is_named_with_its_reason():
    held = Protection("seccomp", True, "filters")
    missing = judge_sandbox((held, Protection("landlock", False, "Linux 5.13 or later has it")))
    assert missing.state is State.WARN
    assert missing.found == "landlock: Linux 5.13 or later has it"
    assert judge_sandbox((held,)).state is State.OK


@pytest.mark.parametrize(
    ("columns", "lines", "encoding", "state"),
    [(80, 24, "utf-8", State.OK), (79, 24, "utf-8", State.WARN), (200, 20, "utf-8", State.WARN),
     (80, 24, "ascii", State.WARN)],
)  # fmt: skip
def test_a_terminal_must_be_large_enough_and_show_unicode(columns, lines, encoding, state):
    check = judge_terminal(True, columns, lines, encoding, {"TERM": "xterm-256color"})
    assert check.state is state
    assert "256 colours" in check.found


def test_no_terminal_is_no_failure():
    assert judge_terminal(False, 80, 24, "utf-8", {}).state is State.ABSENT
    assert judge_clipboard(False, None, {}).state is State.ABSENT


def test_tmux_must_pass_copies_on():
    assert judge_clipboard(True, "external", {}).state is State.WARN
    assert judge_clipboard(True, "on", {}).found.startswith("OSC 52 inside tmux")
    assert judge_clipboard(True, None, {"TERM": "xterm-kitty"}).found == "OSC 52 directly"


def test_ollama_is_optional_and_its_models_are_listed():
    assert judge_ollama(None, None, "Connection refused").state is State.ABSENT
    assert judge_ollama("http://box:1", [], "").state is State.WARN
    many = judge_ollama(None, [f"m{i}" for i in range(9)], "")
    assert many.found.endswith("m5 and 3 more")
