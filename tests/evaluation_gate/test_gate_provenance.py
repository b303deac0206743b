"""An answer's bytes must come from a launch or an operation that was seen."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import _disable_current_modes

from kbtui.evaluation.roles.guard import Watch, seen
from kbtui.evaluation.roles.launches import Launch
from kbtui.evaluation.roles.provenance import FOREIGN, REWRITTEN, Provenance

NO_ARENA = (0, 0)


def strangers(call: Callable[[torch.Tensor, Provenance], Any], strict: bool = True) -> list[str]:
    """What is found wrong with a call on four numbers."""
    x = torch.arange(4.0)
    provenance = Provenance("cpu", (x.untyped_storage().data_ptr(), x.untyped_storage().nbytes()))
    provenance.begin([x], strict)
    with Watch("cpu", (), provenance):
        out = call(x, provenance)
    provenance.end([out])
    return [*provenance.strangers, *(["input"] if provenance.inputs_written else [])]


def launch(provenance: Provenance, *arguments: Any) -> None:
    """What a kernel does that copies its first tensor into its last: nothing that torch dispatches."""
    with seen(Launch("copy", (1,), arguments), provenance):
        arguments[-1].numpy()[:] = arguments[0].numpy()


def launched(x: torch.Tensor, provenance: Provenance) -> torch.Tensor:
    out = torch.empty_like(x)
    launch(provenance, x, out)
    return out


def rewritten(x: torch.Tensor, provenance: Provenance) -> torch.Tensor:
    out = launched(x, provenance)
    out.numpy()[:] = 7.0
    return out


def out_of_sight(x: torch.Tensor, provenance: Provenance) -> torch.Tensor:
    launched(x, provenance)
    with _disable_current_modes():
        return x * 2


def copied_from_out_of_sight(x: torch.Tensor, provenance: Provenance) -> torch.Tensor:
    with _disable_current_modes():
        middle = x * 2
    return launched(middle, provenance)


def into_the_input(x: torch.Tensor, provenance: Provenance) -> torch.Tensor:
    with _disable_current_modes():
        before = x.clone()
        x.mul_(2)
    out = launched(x, provenance)
    with _disable_current_modes():
        x.copy_(before)
    return out


def through_addresses(x: torch.Tensor, provenance: Provenance) -> torch.Tensor:
    """A launch that gets no tensor, as grouped kernels get tables of addresses."""
    out = torch.empty_like(x)
    with seen(Launch("by_address", (1,), (out.data_ptr(),)), provenance):
        out.numpy()[:] = x.numpy()
    return out


@pytest.mark.parametrize("call", [launched, through_addresses, lambda x, p: launched(x, p).clone().view(2, 2)])
def test_what_a_launch_or_a_seen_operation_wrote_is_fine(call: Callable[..., Any]) -> None:
    assert strangers(call) == []


@pytest.mark.parametrize(
    ("call", "found"),
    [(rewritten, REWRITTEN), (out_of_sight, FOREIGN), (copied_from_out_of_sight, FOREIGN), (into_the_input, "input")],
)
def test_what_somebody_else_wrote_is_seen(call: Callable[..., Any], found: str) -> None:
    assert found in strangers(call)


def test_memory_from_a_call_that_nobody_watched_is_taken_as_it_is() -> None:
    kept = torch.ones(4)

    def uses_it(x: torch.Tensor, provenance: Provenance) -> torch.Tensor:
        return launched(kept, provenance)

    assert strangers(uses_it, strict=False) == []
    assert FOREIGN in strangers(uses_it)


def test_a_workspace_that_unwatched_calls_wrote_to_is_still_its_own() -> None:
    provenance, kept = Provenance("cpu", NO_ARENA), []
    for _ in range(2):
        provenance.begin([], strict=True)
        with Watch("cpu", (), provenance):
            if not kept:
                kept.append(torch.zeros(4))
            out = launched(kept[0], provenance)
        provenance.end([out])
        assert provenance.strangers == []
        kept[0].add_(1.0)


def test_a_table_from_the_host_may_be_new_but_not_differ_from_call_to_call() -> None:
    provenance = Provenance("cpu", NO_ARENA)
    for _ in range(2):
        provenance.begin([], strict=True)
        with Watch("cpu", (), provenance):
            torch.from_numpy(np.arange(500))
        assert provenance.strangers == []
    with Watch("cpu", (), provenance):
        torch.from_numpy(np.arange(500) + 1)
    assert provenance.strangers != []


@pytest.mark.parametrize("strict", [False, True])
def test_a_workspace_that_unwatched_calls_wrote_is_no_strangers_and_one_written_in_the_call_is(strict: bool) -> None:
    x, workspace = torch.arange(4.0), torch.empty(4)
    provenance = Provenance("cpu", (x.untyped_storage().data_ptr(), x.untyped_storage().nbytes()))
    provenance.begin([x], strict=True)
    launch(provenance, x, workspace)
    provenance.end([workspace])
    workspace.numpy()[:] = 9.0  # as an unwatched launch leaves it

    provenance.begin([x], strict=strict)
    launch(provenance, workspace, torch.empty(4))
    left = list(provenance.strangers)
    workspace.numpy()[:] = 11.0
    launch(provenance, workspace, torch.empty(4))

    assert REWRITTEN not in left
    assert REWRITTEN in provenance.strangers
