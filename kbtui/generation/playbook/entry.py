"""Playbook entries: a source template, its parameter grid, and what it is. Effects: reads package data.

A family is a folder with ``entries.toml`` and one ``<entry>.kernel.py`` a structure. A template is a whole kernel with
constants at its top; an instantiation replaces those constants and nothing else. No template is ever imported here.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from kbtui.domain.device import DeviceSpec
from kbtui.domain.problem import ProblemSpec
from kbtui.generation.playbook.constants import Value, read_constants, set_constants

Params = Mapping[str, Value]

#: "1 rows" and the like, which formats over any number write.
_ONE_OF = re.compile(r"\b1 (program|row|warp|stage|channel|pixel|element)s\b")


@dataclass(frozen=True, slots=True)
class KeptOut:
    """Points of a grid that the playbook never proposes: those with each of these parameters at one of its values.

    A rewrite may still come upon one.

    Attributes:
        values: parameters, with the values that are out together.
        reason: what was seen there, for a person.
    """

    values: tuple[tuple[str, tuple[Value, ...]], ...]
    reason: str

    def holds(self, params: Params) -> bool:
        return all(params[name] in values for name, values in self.values)


@dataclass(frozen=True, slots=True)
class Entry:
    """One structure of one family.

    Attributes:
        name: the operator's name, e.g. ``softmax_one_row``.
        structure: label shared by all instantiations, e.g. ``softmax/one-row``.
        summary: format string over the parameters that matter most.
        hints: ids of the hints it carries out.
        template: source text, with its parameters as module constants at their defaults.
        grid: values each parameter may take, in order.
        kept_out: points of the grid that are left out, and why.
    """

    name: str
    structure: str
    summary: str
    hints: tuple[str, ...]
    template: str
    grid: tuple[tuple[str, tuple[Value, ...]], ...]
    kept_out: tuple[KeptOut, ...] = ()

    def defaults(self) -> dict[str, Value]:
        constants = read_constants(self.template)
        return {name: constants[name] for name, _ in self.grid}

    def params_of(self, source: str) -> dict[str, Value] | None:
        """The parameters a source of this structure was made with; None if it lacks one of them."""
        constants = read_constants(source)
        names = [name for name, _ in self.grid]
        return {name: constants[name] for name in names} if all(name in constants for name in names) else None

    def why_kept_out(self, params: Params) -> str | None:
        """The reason for which these parameters are not proposed; None where nothing speaks against them."""
        return next((out.reason for out in self.kept_out if out.holds(params)), None)

    def instantiate(self, params: Params, device: DeviceSpec, spec: ProblemSpec) -> str:
        """Source with these parameters, the device's constants and the problem's. Raises KeyError on unknown names."""
        return set_constants(self.template, {**self._given(device, spec), **params})

    def summarise(self, params: Params) -> str:
        """What tells it from the entry's other instantiations: its summary, and what it does not say otherwise."""
        defaults = self.defaults()
        said = _ONE_OF.sub(r"1 \1", self.summary.format(**params))
        unsaid = [name for name, _ in self.grid if f"{{{name}}}" not in self.summary and params[name] != defaults[name]]
        return ", ".join([said, *(f"{name.lower().replace('_', ' ')} {params[name] or 'plain'}" for name in unsaid)])

    def _given(self, device: DeviceSpec, spec: ProblemSpec) -> dict[str, Value]:
        """Constants that are no choice: the chip's, and the problem's own numbers (``eps`` fills ``EPS``)."""
        numbers = {name.upper(): _number(text) for name, text in spec.params}
        known = {"N_SMS": device.n_sms, "SHARED_BYTES": device.shared_per_block, "ARCH": device.arch, **numbers}
        constants = read_constants(self.template)
        return {name: value for name, value in known.items() if name in constants and value is not None}


def families() -> tuple[str, ...]:
    """Families the playbook has structures for."""
    root = resources.files("kbtui.generation.playbook") / "families"
    return tuple(sorted(folder.name for folder in root.iterdir() if (folder / "entries.toml").is_file()))


@cache
def load_entries(family: str | None) -> tuple[Entry, ...]:
    """A family's entries in the order of its file; none for a family the playbook does not know."""
    if family not in families():
        return ()
    folder = resources.files("kbtui.generation.playbook") / "families" / str(family)
    tables = tomllib.loads((folder / "entries.toml").read_text(encoding="utf-8"))
    return tuple(
        Entry(
            name=name,
            structure=table["structure"],
            summary=table["summary"],
            hints=tuple(table["hints"]),
            template=(folder / f"{name}.kernel.py").read_text(encoding="utf-8"),
            grid=tuple((param, tuple(values)) for param, values in table["grid"].items()),
            kept_out=tuple(_kept_out(out) for out in table.get("kept_out", ())),
        )
        for name, table in tables.items()
    )


def _kept_out(table: Mapping[str, Any]) -> KeptOut:
    values = tuple((name, tuple(allowed)) for name, allowed in table.items() if name != "reason")
    return KeptOut(values, table["reason"])


def _number(text: str) -> Value | None:
    """A number, or 1 and 0 for ``true`` and ``false``; None of other text."""
    if text in ("true", "false"):
        return int(text == "true")
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return None
