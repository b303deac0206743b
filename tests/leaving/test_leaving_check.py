"""The exported script as one file: its own judgement and timing arithmetic, without a kernel or a GPU."""

import ast
import math
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch

from kbtui.commands.leave import checker
from kbtui.leaving.assemble import one_file

check: Any = types.ModuleType("check")
check.__file__ = __file__
exec(compile(checker(), __file__, "exec"), check.__dict__)
TOLERANCE = {"floor": 1e-6, "element": 200.0}


def errors(exact: list[float], own: list[float], got: list[float]) -> dict[str, float]:
    return check.errors_of(torch.tensor(exact, dtype=torch.float64), torch.tensor(own), torch.tensor(got))


def test_an_answer_as_good_as_the_references_own_passes():
    exact = [1.0, 2.0, 3.0]
    assert check.value_fault(errors(exact, exact, exact), TOLERANCE) is None


@pytest.mark.parametrize(
    ("got", "said"),
    [
        ([1.0, 2.0, 3.1], "relative L2 error"),
        ([1.0, 2.0, math.nan], "NaN or Inf differs"),
        ([1.0, 2.0, math.inf], "NaN or Inf differs"),
        ([0.0, 0.0, 0.0], "relative L2 error"),
    ],
)
def test_a_wrong_answer_fails_with_its_number(got: list[float], said: str):
    assert said in (check.value_fault(errors([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], got), TOLERANCE) or "")


def test_one_element_far_off_among_many_fails():
    exact = torch.ones(1 << 20, dtype=torch.float64)
    got = exact.float()
    got[5] += 3e-4
    found = check.errors_of(exact, exact.float(), got)
    assert found["rel_l2"] < 1e-6
    assert "one element is off" in (check.value_fault(found, TOLERANCE) or "")


def test_nan_where_the_reference_has_it_is_right():
    exact = [1.0, math.nan, math.inf]
    assert check.value_fault(errors(exact, exact, exact), TOLERANCE) is None


def test_an_output_that_is_an_input_or_of_another_kind_is_named():
    x = torch.ones(4)
    assert check.kind_fault([x[1:]], [torch.ones(3)], [x]) == "shares memory with an input"
    assert "expected" in (check.kind_fault([torch.ones(3)], [x], [x]) or "")
    assert "float64" in (check.kind_fault([x.double()], [x], [x]) or "")
    assert check.kind_fault([x.clone()], [x], [x]) is None


class FakeBench:
    """Calls of the function ``side`` take as many microseconds as it says, and a little more every other time."""

    def calls_of(self, side: Any, copies: Any) -> int:
        return 4

    def timed(self, side: Any, copies: Any, n_calls: int) -> list[float]:
        self.turn = getattr(self, "turn", 0) + 1
        return [side() * (1.0 + 0.01 * (self.turn % 2))] * n_calls


class FakeProblem:
    def inputs(self, where: dict[str, Any]) -> tuple[Any, ...]:
        return ()


def test_sides_are_timed_in_turns_and_told_as_ratios_beside_what_the_search_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(check, "Bench", FakeBench)
    said: list[str] = []
    sides = {"kernel": lambda: 100.0, "PyTorch": lambda: 150.0}
    recorded = {"clock": "measured", "device": "NVIDIA H200", "us": {"kernel": {"4x4": 99.0}}}
    problem = FakeProblem()
    kernel, eager = check._in_turns(problem, sides, {"shape": "4x4", "seed": 1}, recorded, said.append)
    assert kernel["ratio"] == 1.0
    assert eager["low"] < 1.5 < eager["high"]
    assert eager["high"] - eager["low"] < 0.05
    assert "99.0 us measured on NVIDIA H200" in said[0]


def test_it_is_one_file_that_needs_torch_and_the_standard_library():
    names = set()
    for node in ast.walk(ast.parse(checker())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    assert names <= {"torch", *sys.stdlib_module_names}
    assert "torch" in names


def test_what_a_kernel_leaves_unwritten_is_nan_and_only_while_it_is_checked():
    with check.unwritten_memory_is_nan():
        assert torch.empty(5).isnan().all()
        assert torch.empty_like(torch.ones(2, 3)).isnan().all()
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_stranger_reads_its_usage_first_and_main_before_all_else():
    text = checker()
    assert text.startswith('"""Check the kernel in this folder against its reference')
    order = ["def main(", "# Small parts", "# The reference and the kernels", "# Checks", "# Times", "if __name__"]
    places = [text.index(mark) for mark in order]
    assert places == sorted(places)
    assert "kbtui" not in text.replace("without kbtui", "")


def test_it_is_formatted_like_any_source_of_ours(tmp_path: Path):
    ruff = shutil.which("ruff") or str(Path(sys.executable).with_name("ruff"))
    (tmp_path / "check.py").write_text(checker())
    for words in (("format", "--check"), ("check", "--ignore", "E402")):
        options = ["--config", str(Path(__file__).parents[2] / "pyproject.toml")]
        done = subprocess.run([ruff, *words, *options, str(tmp_path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_modules_become_one_file_with_their_imports_merged_and_ours_dropped():
    script = '"""Say it."""\n\nimport sys\n\nfrom kbtui.a import hello\n\n\ndef main():\n    hello()\n\n\n'
    script += 'if __name__ == "__main__":\n    sys.exit(main())\n'
    part = '"""Greeting."""\n\nimport os\nfrom pathlib import Path\n\nimport torch\n\nHERE = Path(os.curdir)\n'
    assert one_file(script, [part]) == (
        '"""Say it."""\n\nimport os\nimport sys\nfrom pathlib import Path\n\nimport torch\n\n\n'
        "def main():\n    hello()\n\n\n# Greeting\n\n\nHERE = Path(os.curdir)\n\n\n"
        'if __name__ == "__main__":\n    sys.exit(main())\n'
    )
