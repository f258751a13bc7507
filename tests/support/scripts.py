"""Scripts of the folder ``speed/``, whose simulated worlds tests use too."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def speed_script(name: str) -> ModuleType:
    """Imports a script by its name."""
    spec = importlib.util.spec_from_file_location(f"speed_{name}", ROOT / "speed" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # dataclasses look for it there
    spec.loader.exec_module(module)
    return module
