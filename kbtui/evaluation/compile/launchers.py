"""Effects: the trusted role that compiles the C code with which Triton launches a kernel.

That code depends on the types of a kernel's arguments alone, so it is made from a list of types by a process that
never sees a candidate, once for all candidates, and copied beside their kernels: a launch then starts no compiler.
Needs a C compiler and the driver's library to link against.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from triton.backends.nvidia import driver as nvidia
from triton.runtime import build as triton_build

_TYPE = re.compile(r"\*?k?\w{1,24}|tensordesc<\w{1,16}\[[\d, ]{1,40}\]>")


def described(source: Any, metadata: Any) -> dict[str, Any]:
    """What ``build`` needs to know of one compiled kernel, as JSON. Called in compile children."""
    descriptors = getattr(metadata, "tensordesc_meta", None) or []
    return {"types": _lists(list(source.signature.values())), "descriptors": [d is not None for d in descriptors]}


def make(fds: tuple[int, ...]) -> dict[str, Callable[..., Any]]:
    del fds
    return {"build": build, "build_driver_helper": build_driver_helper}


def build(cache: str, types: list[Any], descriptors: list[bool]) -> str:
    """Compile one launcher into ``cache`` unless it is there; returns the name of its directory.

    Raises ValueError for what is not a list of types, and what the C compiler's failure raises.
    """
    os.environ["TRITON_CACHE_DIR"] = cache
    signature = dict(enumerate(_checked(types)))
    text = nvidia.make_launcher({}, signature, [{} if used else None for used in descriptors])
    return _compiled(text, "__triton_launcher")


def build_driver_helper(cache: str) -> str:
    """The C helper every launch needs (device properties, module loading); returns the name of its directory."""
    os.environ["TRITON_CACHE_DIR"] = cache
    return _compiled(Path(nvidia.dirname, "driver.c").read_text(), "cuda_utils")


def _compiled(text: str, name: str) -> str:
    """Triton's own path, but for the loading; the directory is named by the text as Triton names it."""
    loaded: list[str] = []

    def not_loaded(_: str, path: str) -> SimpleNamespace:
        loaded.append(path)
        return SimpleNamespace()

    load = triton_build._load_module_from_path
    triton_build._load_module_from_path = not_loaded
    try:
        triton_build.compile_module_from_src(
            src=text,
            name=name,
            library_dirs=nvidia.library_dirs(),
            include_dirs=nvidia.include_dirs,
            libraries=nvidia.libraries,
        )
    finally:
        triton_build._load_module_from_path = load
    return Path(loaded[0]).parent.name


def _checked(types: Any) -> Any:
    """Nested lists of type names as tuples; these come from a process that ran a candidate."""
    if isinstance(types, list):
        return tuple(_checked(t) for t in types)
    if not (isinstance(types, str) and _TYPE.fullmatch(types)):
        raise ValueError(f"{types!r} is not a type")
    return types


def _lists(types: Any) -> Any:
    return [_lists(t) for t in types] if isinstance(types, list | tuple) else str(types)
