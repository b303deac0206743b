"""What a candidate's own code may not ask of Python, and what it must leave as it is. Hooks stay: each in a process."""

import subprocess
import sys
from pathlib import Path

import pytest

from kbtui.evaluation.roles import unchanged

ROOT = Path(__file__).parents[2]
MAIN = """
import sys, torch
from kbtui.evaluation.roles import audit
from kbtui.evaluation import candidate_module
text = open(sys.argv[1]).read()
refused = audit.install()
try:
    candidate_module.execute(text)
except PermissionError:
    pass
print(",".join(refused()))
"""
#: (what a candidate writes, the request that is refused)
REFUSED = {
    "import gc\ngc.get_objects()": "gc.get_objects",
    "import sys\nsys._getframe()": "sys._getframe",
    "import inspect\ninspect.currentframe()": "sys._getframe",
    "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    e.__traceback__.tb_frame": "object.__getattr__",
    "import threading\nthreading.Thread(target=print).start()": "_thread.start_new_thread",
    "import ctypes\nctypes.CDLL(None)": "ctypes.dlopen",
    "def f(): pass\nf.__code__ = (lambda: 1).__code__": "object.__setattr__",
    "import socket\nsocket.socket()": "socket.__new__",
    "import sys\nsys.settrace(print)": "sys.settrace",
    "exec('1')": "compile",
    "open('/proc/self/mem')": "open",
    "import sys\nsys.modules.pop('kbtui')\nimport kbtui": "import",
}
FAIR = """
import collections, dataclasses, enum, functools, math, typing, warnings
import torch

@dataclasses.dataclass(frozen=True)
class Launch:
    block: int
    warps: int = 4

Pair = collections.namedtuple("Pair", "a b")
Named = typing.NamedTuple("Named", [("a", int)])
Kind = enum.Enum("Kind", "A B")

@functools.lru_cache
def twice(x): return 2 * x

@functools.wraps(twice)
def wrapped(*args): return twice(*args)

warnings.warn("slow")
assert Launch(1) == Launch(1) and Pair(1, 2).a == wrapped(1) - 1
torch.ones(4).view(2, 2).contiguous()
try:
    raise ValueError("no")
except ValueError as error:
    str(error)
"""


def refusals(source: str, folder: Path) -> str:
    path = folder / "kernel_of_somebody.py"
    path.write_text(source)
    command = [sys.executable, "-c", MAIN, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_what_is_fair_is_left_alone(tmp_path: Path) -> None:
    assert refusals(FAIR, tmp_path) == ""


def test_a_request_that_leads_out_is_refused_and_remembered(tmp_path: Path) -> None:
    tried = "\n".join(f"try:\n    exec_{i}()\nexcept PermissionError:\n    pass" for i in range(len(REFUSED)))
    bodies = "\n".join(
        f"def exec_{i}():\n" + "".join(f"    {line}\n" for line in source.splitlines())
        for i, source in enumerate(REFUSED)
    )
    assert set(REFUSED.values()) <= set(refusals(f"{bodies}\n{tried}\n", tmp_path).split(","))


def test_a_replaced_function_an_added_method_and_a_flag_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import json

    import torch

    before = unchanged.Unchanged()
    assert before.changed() == []
    monkeypatch.setattr(json, "dumps", lambda value: "{}")
    monkeypatch.setattr(torch.Tensor, "exp", lambda self: self, raising=False)
    monkeypatch.setenv("TRITON_INTERPRET", "2")
    changed = before.changed()
    assert "json.dumps" in changed
    assert "torch.Tensor.exp" in changed
    assert "environment" in changed
