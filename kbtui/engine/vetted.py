"""A problem is vetted before any search. Effects: a device, and the workspace's cache of what was found."""

from pathlib import Path

from kbtui.domain.problem import Problem
from kbtui.domain.vetting import Vetting
from kbtui.engine.ports import Device, Vets
from kbtui.errors import UsageError
from kbtui.evaluation.vetting.cache import vetted


def vet_on(device: Device, problem: Problem, root: Path, allclose: float | None = None) -> Vetting | None:
    """What vetting finds, or found before in this workspace. None on a device that plays recorded results back."""
    if not isinstance(device, Vets):
        return None
    return vetted(root, problem, device.spec.name, allclose, lambda: device.vet(problem, allclose))


def refuse_unsound(device: Device, problem: Problem, root: Path) -> None:
    """Raises UsageError, in one line with the reason, for a problem whose gate lets null kernels pass."""
    vetting = vet_on(device, problem, root)
    if vetting is None or vetting.sound:
        return
    first, n_more = vetting.complaints[0], len(vetting.complaints) - 1
    more = f"; kbtui verify tells {n_more} more" if n_more else ""
    what = f"{problem.spec.name} is not fit for a search: {first.what}"
    raise UsageError(what, f"{first.do}{more}; --unvetted searches all the same")
