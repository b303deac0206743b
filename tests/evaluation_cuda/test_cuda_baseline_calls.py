"""What a candidate is compared with beside other candidates, by name."""

import sys
import types

import pytest
import torch

from kbtui.evaluation.baselines import COMPILED, LIBRARIES
from kbtui.evaluation.roles import baseline_calls
from kbtui.evaluation.roles.baseline_calls import baseline_call


def double(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


def flag_gems(softmax: object) -> types.ModuleType:
    """A library that stands in: its softmax is the one given."""
    module = types.ModuleType("flag_gems")
    module.softmax = softmax  # type: ignore[attr-defined]
    return module


def test_eager_is_the_reference_itself_and_each_compiled_mode_is_asked_of_torch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def compiled(call: object, *, mode: str | None = None) -> str:
        assert call is double
        asked.append(mode)
        return f"compiled, {mode}"

    monkeypatch.setattr(torch, "compile", compiled)
    assert baseline_call("eager", double, None) is double
    assert [baseline_call(name, double, None) for name in COMPILED] == [f"compiled, {m}" for m in COMPILED.values()]
    assert asked == [None, "max-autotune", "max-autotune-no-cudagraphs"]
    with pytest.raises(LookupError, match="'fastest'"):
        baseline_call("fastest", double, None)


@pytest.mark.parametrize("name", ["copy", "read"])
def test_the_ceilings_move_the_bytes_they_say_whatever_the_inputs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline_calls, "_CEILING_BYTES_ON_CPU", 1 << 20)
    found = baseline_call(name, double, None)(torch.ones(1))
    assert torch.equal(found, torch.full_like(found, 1.0 if name == "copy" else 65536.0))
    n_read, n_written = (found.numel(), found.numel()) if name == "copy" else (found.numel() * 65536, 0)
    assert 4 * (n_read + n_written) == 1 << 20


def test_a_library_is_asked_for_the_problems_family_and_its_answer_is_held_against_the_reference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = torch.randn(3, 5)

    def reference(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)

    monkeypatch.setitem(sys.modules, "flag_gems", flag_gems(torch.softmax))
    assert torch.equal(baseline_call("flaggems", reference, "row_softmax")(x), reference(x))
    with pytest.raises(LookupError, match="flag_gems has no kernel for this operation"):
        baseline_call("flaggems", reference, "channel_rms_norm")
    with pytest.raises(LookupError, match=r"flag_gems is asked by the problem's family: name it in problem\.toml"):
        baseline_call("flaggems", reference, None)
    monkeypatch.setitem(sys.modules, "flag_gems", flag_gems(lambda x, dim: torch.log_softmax(x, dim)))
    with pytest.raises(ArithmeticError, match="something else"):
        baseline_call("flaggems", reference, "row_softmax")(x)


@pytest.mark.parametrize("name", LIBRARIES)
def test_that_a_library_has_no_such_kernel_is_told_whether_it_is_installed_or_not(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(module: str) -> None:
        raise AssertionError(f"{module} is imported for nothing")

    monkeypatch.setattr(baseline_calls.importlib, "import_module", never)
    with pytest.raises(LookupError, match=f"{LIBRARIES[name]} has no kernel for this operation"):
        baseline_call(name, double, "channel_rms_norm")


def test_what_a_library_needs_and_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def needs_yaml(name: str) -> None:
        raise ModuleNotFoundError("No module named 'yaml'", name="yaml")

    monkeypatch.setattr(baseline_calls.importlib, "import_module", needs_yaml)
    with pytest.raises(ImportError, match="flag_gems needs yaml"):
        baseline_call("flaggems", double, "row_softmax")
