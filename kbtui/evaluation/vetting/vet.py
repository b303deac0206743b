"""Effects: vets a problem in a trusted child of a zygote. The child computes where its environment says."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from kbtui.domain.codec import from_plain, to_plain
from kbtui.domain.device import DeviceSpec
from kbtui.domain.problem import Problem, Shape, ShapeRole
from kbtui.domain.verdict import Proof
from kbtui.domain.vetting import Cell, Complaint, DistributionFit, Flaw, Vetting
from kbtui.evaluation.process import Worker, WorkerError, WorkerFailure, Zygote
from kbtui.evaluation.vetting import advice
from kbtui.evaluation.vetting.declared import formula_complaint, too_large
from kbtui.evaluation.vetting.plan import Trial, small_shapes, trials

ROLE = "kbtui.evaluation.vetting.role"
CALL_TIMEOUT_S = 60.0
#: On the CPU: what one call of the reference may be, and what all trials may take. The rest is told, not tried.
CPU_ELEMENTS, CPU_FLOPS, BUDGET_CPU_S = 1 << 21, 3e8, 30.0
#: On a GPU a call may be a thousand times that.
GPU_FACTOR = 1000
#: A shape this small is tried as it is.
_FEW_ELEMENTS = 40_000
_SOME_ELEMENTS = 150_000
#: Rows of a larger one, fewer and fewer until a call is cheap.
_ROWS = (4, 2, 1)


@dataclass(slots=True)
class _Found:
    complaints: list[Complaint] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unvetted: list[str] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    tried: dict[tuple[str, str], None] = field(default_factory=dict)
    cpu_s: float = 0.0
    fits: dict[str, DistributionFit] = field(default_factory=dict)
    reductions: list[str] = field(default_factory=list)


def vet(zygote: Zygote, problem: Problem, device: DeviceSpec, proof: Proof, allclose: float | None = None) -> Vetting:
    """Never raises for what is wrong with the problem: that is a complaint. Raises EngineError without a zygote.

    ``allclose``: judge as torch.allclose with this atol and rtol does, in place of the problem's tolerance.
    """
    began = time.monotonic()
    found = _Found()
    try:
        with _opened(zygote, problem, found) as worker:
            if worker is not None:
                _Vet(worker, problem, device, proof, allclose, found).run()
    except WorkerFailure as failure:
        found.complaints.append(_broke(problem, failure))
    return Vetting(
        problem=problem.spec.name,
        device=device.key,
        criterion=criterion_words(problem, allclose),
        complaints=tuple(dict.fromkeys(found.complaints)),
        nulls=advice.summaries(found.cells),
        shapes=tuple(dict.fromkeys(shape for shape, _ in found.tried)),
        distributions=tuple(dict.fromkeys(distribution for _, distribution in found.tried)),
        unvetted=tuple(dict.fromkeys(found.unvetted)),
        notes=tuple(dict.fromkeys(found.notes)),
        wall_s=round(time.monotonic() - began, 2),
        cpu_s=round(found.cpu_s, 2),
        fits=tuple(found.fits.values()),
        reductions=tuple(found.reductions),
    )


def criterion_words(problem: Problem, allclose: float | None) -> str:
    """``a relative L2 error of 1e-06 ...``, or ``allclose at 0.01``."""
    if allclose is not None:
        return f"allclose at {allclose:g}"
    return f"a relative L2 error of {problem.spec.tolerance.floor:g}, or twice the reference's own"


@contextmanager
def _opened(zygote: Zygote, problem: Problem, found: _Found) -> Iterator[Worker | None]:
    with zygote.spawn(ROLE, sandbox=None) as worker:
        told = worker.call("open", timeout_s=CALL_TIMEOUT_S, problem=to_plain(problem)).value
        found.complaints += [from_plain(Complaint, plain) for plain in told]
        yield worker if not told else None


@dataclass(slots=True)
class _Vet:
    worker: Worker
    problem: Problem
    device: DeviceSpec
    proof: Proof
    allclose: float | None
    found: _Found

    def run(self) -> None:
        small = small_shapes(self.problem.spec)
        self._examine(small[0])
        if self.found.complaints:
            return
        self._declared()
        if self.found.complaints:
            return
        self._reductions(small)
        self._try_all()
        self._conclude()

    def _examine(self, shape: Shape) -> None:
        for told in self._call("examine", shape=to_plain(shape)):
            if isinstance(told, str):
                self.found.notes.append(told)
            else:
                self.found.complaints.append(from_plain(Complaint, told))

    def _declared(self) -> None:
        spec = self.problem.spec
        for shape in spec.shapes:
            sizes = self._sizes(shape, rows=0)
            if sizes is None:
                self.found.notes.append(f"the sizes of the inputs of {shape.name} cannot be had without making them")
                continue
            large = too_large(shape, sizes["input_bytes"], self.device.memory_bytes, self.device.key)
            self.found.complaints += [large] if large else []
        if not spec.shapes_of(ShapeRole.HIDDEN):
            self.found.notes.append("there is no [[hidden]] shape: a kernel may be right on the timed ones alone")

    def _reductions(self, small: Sequence[Shape]) -> None:
        try:
            words = self._call("reductions", shapes=[to_plain(s) for s in small])
        except WorkerError as error:
            self.found.unvetted.append(f"a part of any reduction: {_line(error)}")
            return
        for told in words:
            kind, _, axes = told.partition(": ")
            self.found.reductions.append(f"{axes} ({kind})")
            if kind == "ordered":
                why = "its order matters, or it is tied to others; only every fourth element was tried"
                self.found.unvetted.append(f"a part of {axes}: {why}")
        if not words:
            self.found.notes.append("no axis is reduced: there is no part of a reduction to leave out")

    def _try_all(self) -> None:
        sized: dict[str, tuple[Shape, str | None]] = {}
        for trial in trials(self.problem.spec, self.proof):
            name = trial.shape.name
            if name not in sized:
                sized[name] = self._affordable(trial.shape)
            shape, why = sized[name]
            if why is None and self.found.cpu_s > BUDGET_CPU_S:
                why = f"{BUDGET_CPU_S:.0f} s of CPU were spent on others"
            if why is None:
                why = self._try(trial, shape)
            if why is not None:
                self.found.unvetted.append(f"{name}: {why}")

    def _affordable(self, shape: Shape) -> tuple[Shape, str | None]:
        """The shape to try, or why none is."""
        whole = self._sizes(shape, rows=0)
        if whole is None:
            return shape, "the sizes of its inputs cannot be had without making them"
        if whole["n_elements"] <= _FEW_ELEMENTS and self._cheap(shape, whole["n_elements"]):
            return shape, None
        cheap = [s for s in self._with_fewer_rows(shape) if self._cheap(*s)]
        few = next((s for s, n_elements in cheap if n_elements <= _SOME_ELEMENTS), None)
        if not cheap:
            return shape, f"too much to compute on {self.device.key}, with fewer rows too"
        return few or cheap[-1][0], None

    def _with_fewer_rows(self, shape: Shape) -> Iterator[tuple[Shape, int]]:
        """Fewer and fewer, with the elements of the inputs."""
        for rows in _ROWS:
            if (sizes := self._sizes(shape, rows)) is not None:
                dims = tuple((str(k), int(n)) for k, n in sizes["dims"])
                name = "x".join(str(n) for _, n in dims) + (f" {shape.dtype}" if shape.dtype else "")
                named = shape if dims == shape.dims else replace(shape, dims=dims, name=name)
                yield named, sizes["n_elements"]

    def _cheap(self, shape: Shape, n_elements: int) -> bool:
        factor = GPU_FACTOR if self.proof is Proof.GPU else 1
        few_flops = self.problem.spec.flops(shape) <= factor * CPU_FLOPS
        return few_flops and n_elements <= factor * CPU_ELEMENTS

    def _try(self, trial: Trial, shape: Shape) -> str | None:
        """Why it could not be tried."""
        if (shape.name, trial.distribution) in self.found.tried:
            self._stand_for(trial, shape)
            return None
        try:
            judged = self._call(
                "vet",
                shape=to_plain(shape),
                distribution=trial.distribution,
                other=trial.other,
                seed=trial.seed,
                allclose=self.allclose,
            )
        except WorkerError as error:
            return _line(error)
        self.found.tried[shape.name, trial.distribution] = None
        self.found.cells += [
            Cell(shape=shape.name, stands_for=trial.shape.name, distribution=trial.distribution, **cell)
            for cell in judged["cells"]
        ]
        self.found.cpu_s = judged["cpu_s"]
        known = self.found.fits.get(trial.distribution, DistributionFit(trial.distribution, 1.0, 0.0))
        fit = replace(known, finite=min(known.finite, judged["finite"]), own=max(known.own, judged["own"]))
        self.found.fits[trial.distribution] = fit
        wrong = formula_complaint(self.problem.spec, shape, judged["moved_bytes"])
        if wrong and all(c.flaw is not Flaw.BAD_FORMULA for c in self.found.complaints):
            self.found.complaints.append(wrong)
        return None

    def _stand_for(self, trial: Trial, shape: Shape) -> None:
        """What was found at a shape with fewer rows holds for every shape that has the same with fewer rows."""
        same = [c for c in self.found.cells if (c.shape, c.distribution) == (shape.name, trial.distribution)]
        first = same[0].stands_for if same else ""
        self.found.cells += [replace(c, stands_for=trial.shape.name) for c in same if c.stands_for == first]

    def _conclude(self) -> None:
        found, spec = self.found, self.problem.spec
        if not found.cells:
            what = "no null kernel could be tried"
            why = found.unvetted[0] if found.unvetted else "there is no shape"
            found.complaints.append(Complaint(Flaw.NOTHING_VETTED, f"{what}: {why}", "add a small [[proxy]] shape"))
        if self.allclose is None:
            found.complaints += advice.tolerance_complaints(found.cells, spec)
        found.complaints += advice.null_complaints(found.cells, spec, self.allclose)
        found.notes += advice.notes(found.cells, spec, self.allclose)

    def _sizes(self, shape: Shape, rows: int) -> dict[str, Any] | None:
        try:
            sizes: dict[str, Any] = self._call("sizes", shape=to_plain(shape), rows=rows)
        except WorkerError:
            return None
        return sizes

    def _call(self, method: str, **params: Any) -> Any:
        return self.worker.call(method, timeout_s=CALL_TIMEOUT_S, **params).value


def _line(error: WorkerError) -> str:
    return " ".join(error.told.split())[:160]


def _broke(problem: Problem, failure: WorkerFailure) -> Complaint:
    told = " ".join(str(failure).split())[:200]
    return Complaint(Flaw.REFERENCE_RAISES, f"the reference of {problem.spec.name} failed: {told}", "run it by itself")
