"""The process in which contests are held: asked, slow, dead, and asked again."""

import importlib.util
import sys
from pathlib import Path

import pytest

from benchmarks.six.hall import Hall
from benchmarks.six.search import with_bytecode
from kbtui.errors import EngineError

INSIDE = """
import os, sys, time
from pathlib import Path
from benchmarks.six.hall import serve, stdout_for_answers
from kbtui.errors import EngineError

answers = stdout_for_answers()
print("before the first contest", flush=True)

def hold(case):
    print(f"{case} in {os.getpid()}", flush=True)
    if case == "refused":
        raise EngineError("no candidate could be measured", "read the log")
    if case == "dies":
        os._exit(9)
    if case == "hangs":
        time.sleep(60)

serve(answers, hold, lambda case: Path(sys.argv[1]) / f"{case}.log")
"""


@pytest.fixture
def hall(tmp_path: Path) -> Hall:
    return Hall([sys.executable, "-u", "-c", INSIDE, str(tmp_path)], tmp_path / "hall" / "hall.log")


def hold(hall: Hall, case: str, root: Path, limit_s: float = 30.0) -> str:
    hall.hold(case, root / f"{case}.log", limit_s)
    return (root / f"{case}.log").read_text().split()[-1]


def test_one_process_holds_them_all_and_each_has_a_log_of_its_own(hall: Hall, tmp_path: Path) -> None:
    hall.open()
    first = hold(hall, "softmax", tmp_path)
    assert hold(hall, "mat_vec", tmp_path) == first
    hall.close()
    hall.close()
    assert hall.log.read_text() == "before the first contest\n"
    assert not Path("/proc", first).exists()


@pytest.mark.parametrize(
    ("case", "limit_s", "why"),
    [("refused", 30.0, "no candidate could be measured"), ("dies", 30.0, "dies in"), ("hangs", 0.3, "after 0 s")],
)
def test_one_that_fails_says_why_and_the_next_gets_another_process(
    hall: Hall, tmp_path: Path, case: str, limit_s: float, why: str
) -> None:
    first = hold(hall, "softmax", tmp_path)
    with pytest.raises(EngineError, match=f"the contest came to nothing: .*{why}"):
        hall.hold(case, tmp_path / f"{case}.log", limit_s)
    assert not Path("/proc", first).exists()
    assert hold(hall, "mat_vec", tmp_path) != first
    hall.close()


def test_a_process_that_cannot_start_says_its_last_words(tmp_path: Path) -> None:
    hall = Hall([sys.executable, "-c", "raise SystemExit('no such GPU')"], tmp_path / "hall.log")
    with pytest.raises(EngineError, match="the contest came to nothing: no such GPU"):
        hall.open()


def test_bytecode_is_kept_beside_its_module_or_elsewhere_where_it_may_not_lie_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "torch.py"
    told = {"PYTHONDONTWRITEBYTECODE": "1", "HOME": "/root"}
    assert with_bytecode(told, module) == {"HOME": "/root"}
    monkeypatch.setattr("os.access", lambda *_: False)
    assert with_bytecode(told, module).keys() == {"HOME", "PYTHONPYCACHEPREFIX"}
    assert with_bytecode(told | {"PYTHONPYCACHEPREFIX": "/x"}, module)["PYTHONPYCACHEPREFIX"] == "/x"
    assert with_bytecode(told, None) == {"HOME": "/root"}
    cached = Path(importlib.util.cache_from_source(str(module)))
    cached.parent.mkdir()
    cached.touch()
    assert with_bytecode(told, module) == {"HOME": "/root"}
