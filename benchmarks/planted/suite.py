"""The plants, and what is found out about them without a GPU: compiled resources, traces, first hints, remedies.

Effects: reads the plants beside this file; compiles and traces in children.
"""

import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Self

from hints import choose_hints, load_hints
from kbtui.domain.device import DeviceSpec
from kbtui.domain.measurement import Clock
from kbtui.domain.problem import Problem, Shape, ShapeRole
from kbtui.domain.profile import Bottleneck, Diagnosis
from kbtui.domain.proposal import Hint, Phase
from kbtui.evaluation.compile.compiler import Compiler, ProblemInputs, describe_inputs
from kbtui.evaluation.modelled.clock import ModelledClock
from kbtui.evaluation.modelled.time import ModelledTime
from kbtui.evaluation.modelled.tracing import Tracer
from kbtui.evaluation.process import Zygote
from kbtui.generation.playbook import load_entries
from kbtui.generation.rewrites import REWRITES, Target
from kbtui.problems import load_problem

FOLDER = Path(__file__).parent
#: Sources that the first hint may give, the likeliest to help first.
REMEDIES = 4


@dataclass(frozen=True, slots=True)
class Plant:
    """A kernel that is slow in one known way on one shape of its problem.

    ``unseen``: set after the rules were last changed, so that it judges them; the others helped to make them.
    """

    name: str
    problem: Problem
    shape: Shape
    source: str
    expected: tuple[Bottleneck, ...]
    unseen: bool = False

    def named_by(self, diagnosis: Diagnosis) -> bool:
        """Whether the first finding is what was planted."""
        return diagnosis.findings[0].bottleneck in self.expected


@dataclass(frozen=True, slots=True)
class Remedy:
    """What one operator of a hint makes of a plant."""

    operator: str
    summary: str
    source: str


def load_plants() -> tuple[Plant, ...]:
    tables = tomllib.loads((FOLDER / "plants.toml").read_text(encoding="utf-8"))
    return tuple(_plant(name, table) for name, table in tables.items())


def _plant(name: str, table: dict[str, object]) -> Plant:
    problem = load_problem(str(table["problem"]))
    dims = tuple((k, int(v)) for k, v in dict(table["dims"]).items())  # type: ignore[call-overload]
    dtype = str(table["dtype"]) if "dtype" in table else None
    shape = Shape("x".join(str(n) for _, n in dims), dims, ShapeRole.TUNE, 1, dtype)
    others = tuple(s for s in problem.spec.shapes if s.role is not ShapeRole.TUNE)
    spec = replace(problem.spec, shapes=(shape, *others))
    source = (FOLDER / f"{name}.kernel.py").read_text(encoding="utf-8")
    expected = tuple(Bottleneck(b) for b in table["expected"])  # type: ignore[attr-defined]
    unseen = bool(table.get("unseen", False))
    return Plant(name, replace(problem, spec=spec, kernel_source=source), shape, source, expected, unseen)


def first_hint(plant: Plant, diagnosis: Diagnosis, device: DeviceSpec) -> Hint:
    """What a search would be told first, on a chip of this kind."""
    spec = plant.problem.spec
    return choose_hints(load_hints(), spec.family, diagnosis, Phase.COARSE, (), 1, device.arch)[0]


def remedies(hint: Hint, plant: Plant, device: DeviceSpec) -> tuple[Remedy, ...]:
    """The first edits of each operator of a hint, in turns."""
    columns = [_applied(name, plant, device) for name in hint.operators]
    turns = (next(column, None) for _ in range(REMEDIES) for column in columns)
    return tuple(islice((r for r in turns if r is not None), REMEDIES))


def _applied(operator: str, plant: Plant, device: DeviceSpec) -> Iterator[Remedy]:
    spec = plant.problem.spec
    for entry in load_entries(spec.family):
        if entry.name == operator:
            params = entry.defaults()
            yield Remedy(operator, entry.summarise(params), entry.instantiate(params, device, spec))
    for rewrite in REWRITES:
        if rewrite.name == operator:
            for edit in rewrite.each(plant.source, Target.of(device, spec)):
                yield Remedy(operator, edit.summary, edit.source)


class Workbench:
    """Children that compile and trace for one device."""

    def __init__(self, device: DeviceSpec, root: Path, workers: int) -> None:
        self.device, self.root, self._workers = device, root, workers
        self._held = ExitStack()
        self._compilers: dict[str, Compiler] = {}
        self._inputs: dict[str, ProblemInputs] = {}
        self._clocks: dict[str, ModelledClock] = {}

    def __enter__(self) -> Self:
        logs = self.root / "logs"
        self.compiling = self._held.enter_context(Zygote(logs / "compiler.log", interpret=False))
        self.interpreting = self._held.enter_context(Zygote(logs / "interpreter.log", interpret=True))
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def compiler(self, plant: Plant) -> Compiler:
        if plant.name not in self._compilers:
            inputs = self._inputs[plant.name] = describe_inputs(self.compiling, plant.problem)
            cache = self.root / "compiled" / plant.name
            measured = self.device.clock is Clock.MEASURED
            made = Compiler(
                self.compiling,
                self.device,
                plant.problem,
                inputs,
                cache,
                self._workers,
                launchers=measured,
                timeout_s=100,
            )
            self._compilers[plant.name] = self._held.enter_context(made)
        return self._compilers[plant.name]

    def traced(self, plant: Plant) -> ModelledTime:
        """The plant's traffic and modelled time on its shape."""
        compiler = self.compiler(plant)
        if plant.name not in self._clocks:
            tracer = Tracer(self.interpreting, self._inputs[plant.name], self.device)
            self._clocks[plant.name] = ModelledClock(plant.problem.spec, self.device, tracer)
        report = compiler.submit(plant.source).result()
        return self._clocks[plant.name].times(plant.source, [plant.shape], report.resources)[plant.shape.name]
