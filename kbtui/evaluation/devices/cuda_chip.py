"""From what torch reads off a GPU, and its data sheet, to a DeviceSpec. Pure but for the environment it is given."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kbtui.domain.device import DATA_SHEETS, DeviceSpec, closest_data_sheet
from kbtui.domain.measurement import Clock
from kbtui.errors import DeviceError


def visible_device(index: int, environ: Mapping[str, str]) -> str:
    """What CUDA_VISIBLE_DEVICES must say so that ``cuda:index`` is a child's only GPU. Raises DeviceError."""
    listed = environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        return str(index)
    entries = [e.strip() for e in listed.split(",") if e.strip()]
    if index >= len(entries):
        raise DeviceError(
            f"there is no cuda:{index}: CUDA_VISIBLE_DEVICES lists {len(entries)} GPUs", "name another, or change it"
        )
    return entries[index]


def spec_of(key: str, properties: Mapping[str, Any]) -> DeviceSpec:
    """Limits read off the device; rates, and what torch does not tell, from the closest data sheet."""
    sheet = closest_data_sheet(properties["name"], properties["arch"])
    read = {name: value for name, value in properties.items() if value}
    return replace(sheet, **{**read, "key": key, "clock": Clock.MEASURED})


def has_data_sheet(name: str) -> bool:
    """Whether the peaks in its spec are its own, and so can refute a time."""
    return any(chip in name.lower() for chip in DATA_SHEETS)
