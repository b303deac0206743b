"""Modules that stand in no package, such as docs/viewer.py: loaded by their path."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def load_script(path: Path) -> ModuleType:
    """Run anew each time, as ``script_NAME``: a plain name might hide a package's. Raises what the script raises."""
    found = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module  # dataclasses look there for their own module
    found.loader.exec_module(module)
    return module
