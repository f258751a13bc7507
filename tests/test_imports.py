"""Importing the package has no effects and stays light, and a room imports only the rooms above it."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("torch", "transformers", "lm_eval", "lmms_eval", "datasets", "matplotlib", "openai", "pandas", "pycountry")

# Modules that run a model in the process, or are one, or are a data set: they are imported by a run that needs them.
HEAVY_MODULES = (
    "culture_tasks.insertion.",
    "culture_tasks.harness.lmms_eval.knowledge_insertion",
    "culture_tasks.harness.decoded",
    "culture_tasks.harness.lm_eval.task",
    "culture_tasks.harness.lmms_eval.task",
)

WATCH = """
import importlib, json, logging, os, sys, threading

read = []

class Watched(type(os.environ)):
    def __getitem__(self, name):
        read.append(name)
        return super().__getitem__(name)

os.environ.__class__ = Watched
heavy, report = sys.argv[1].split(","), {}
for name in sys.argv[2:]:
    importlib.import_module(name)
    loaded = [other for other in heavy if other in sys.modules]
    report[name] = loaded
    if loaded:
        heavy = [other for other in heavy if other not in loaded]
print(json.dumps({
    "loaded": report,
    "read": [name for name in read if name.startswith(("CULTURE", "OPENAI", "AZURE"))],
    "handlers": [repr(handler) for handler in logging.root.handlers],
    "levels": [name for name, one in logging.root.manager.loggerDict.items()
               if name.startswith("culture_tasks") and (getattr(one, "level", 0) or getattr(one, "handlers", []))],
    "threads": threading.active_count(),
}))
"""


def modules() -> list[str]:
    names = []
    for folder, _, files in os.walk(ROOT / "culture_tasks", followlinks=True):
        package = ".".join(Path(folder).relative_to(ROOT).parts)
        names += [f"{package}.{file.removesuffix('.py')}" for file in files if file.endswith(".py")]
    return sorted(name.removesuffix(".__init__") for name in names)


def watch(tmp_path, *names):
    home = tmp_path / "home"
    home.mkdir()
    kept = ("PATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment |= {"HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1", "HF_HOME": str(home / "hf")}
    done = subprocess.run(
        [sys.executable, "-c", WATCH, ",".join(HEAVY), *names],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout), done.stderr, sorted(str(path) for path in home.rglob("*"))


def test_importing_every_light_module_has_no_effects_and_loads_no_heavy_library(tmp_path):
    """lmms-eval imports the plug-in and the benchmarks at every start, before it knows whether they are asked for."""
    light = [name for name in modules() if not any(name.startswith(prefix.rstrip(".")) for prefix in HEAVY_MODULES)]
    assert "culture_tasks.harness.lmms_eval.plugin" in light
    report, said, written = watch(tmp_path, *light)
    assert {name: loaded for name, loaded in report["loaded"].items() if loaded} == {}
    assert (report["read"], report["handlers"], report["levels"], report["threads"]) == ([], [], [], 1)
    assert (said, written) == ("", [])


ROOMS = (
    *(
        {"errors", "text", "docstrings", "plain_files", "secret_texts"},
        {"text_tables", "prompt_files", "settings", "vocabulary"},
        {"metrics"},
    ),
    *({"data", "published", "costs"}, {"judges"}, {"benchmarks"}, {"insertion"}, {"harness"}, {"results"}),
    *({"pages"}, {"people"}, {"cultures"}, {"report", "rejudge"}, {"frames"}, {"preferences"}, {"selftest"}, {"cli"}),
)
"""Rooms of the package from the bottom to the top; those of one set don't import each other."""


def imports() -> Iterator[tuple[str, str]]:
    """Yields each module of the package with each module of ours that it imports, anywhere in its text."""
    for name in modules():
        path = ROOT.joinpath(*name.split("."))
        file = path.with_suffix(".py")
        file = file if file.is_file() else path / "__init__.py"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("culture_tasks."):
                yield name, str(node.module)


START_OF_LMMS_EVAL = """
from pydantic import BaseModel
from culture_tasks.harness.lmms_eval import plugin
assert plugin.task_index()
def below(model):
    return [model, *(one for each in model.__subclasses__() for one in below(each))]
ours = [model for model in below(BaseModel) if model.__module__.startswith("culture_tasks")]
assert len(ours) > 20
print([model.__name__ for model in ours if model.__pydantic_complete__])
"""


def test_lmms_eval_starts_without_making_the_validator_of_any_model():
    command = [sys.executable, "-c", START_OF_LMMS_EVAL]
    assert subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout == "[]\n"


def test_a_room_imports_only_rooms_above_it_in_the_list():
    place = {room: at for at, rooms in enumerate(ROOMS) for room in rooms}
    found = [
        f"{importer} imports {imported}"
        for importer, imported in imports()
        if (own := importer.split(".")[1:2]) and (other := imported.split(".")[1]) != own[0]
        if place[other] >= place[own[0]]
    ]
    assert found == []
