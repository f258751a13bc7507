"""The recipes of a folder of training data, for ``trl sft``, ``trl dpo`` and ``trl kto``, and SimPO's script.

The YAML files beside this module are their templates. A method has two: ``paper`` trains all weights by the values of
CARE's paper, and ``lora`` is ours, for one GPU. A method whose data aren't in the folder has none there.

TRL reads the paths in a recipe from its working directory, so they are those of the folder as the user gave it: a
recipe runs from where the folder was built, or from anywhere if its path is absolute. A relative path begins with
``./``, since TRL would take ``prefs/dpo`` for a data set on the Hub wherever there is no such folder.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import PurePath
from string import Template

from culture_tasks.text_tables import plain

PAPER_MODELS = (
    "Qwen/Qwen2.5-7B-Instruct",
    "google/gemma-2-9b-it",
    "meta-llama/Llama-3.1-8B-Instruct",
    "mistralai/Mistral-7B-Instruct-v0.3",
)
"""The models of CARE's Table 3; the recipes train the first, unless told otherwise."""

MODELS_FOLDER = "models"  # where recipes save their models; the manifest above names the data of these

_BATCH = 128
_EPOCHS = 3
_WARMUP = 5
_SCRIPT = "simpo.py"
_NOTES = """\
# The rows get the model's own chat template: evaluate what is trained with --apply_chat_template.
{}# A lower loss or a larger margin is no evidence of better answers: generate them, and have them judged.
"""
_DEV_NOTE = "ours: the paper names no development set; data built with --dev 0 have none"


def recipe_files(
    folder: PurePath,
    rows: Mapping[str, int],
    dev_rows: Mapping[str, int],
    languages: Sequence[str],
    model: str = PAPER_MODELS[0],
) -> dict[str, str]:
    """Returns the recipes for a folder of training data with rows of each method, and SimPO's script, by name."""
    named = plain(", ".join(sorted(languages)))
    several = (
        f"# The paper trains one model for each language; these data have {named}.\n" if len(languages) > 1 else ""
    )
    values = {
        "model": _text(model),
        "paper_models": ", ".join(PAPER_MODELS),
        "notes": _NOTES.format(several),
        "script": _for_shell(folder / _SCRIPT),
    }
    for name, count in rows.items():
        if count:
            values |= {name: _text(_path(folder / name)), f"{name}_steps": _steps(count)}
            values[f"{name}_evaluated"] = f"epoch  # {_DEV_NOTE}" if dev_rows.get(name) else _text("no")
    files = {}
    for file in resources.files(__package__).iterdir():
        name = file.name
        if not name.endswith(".yaml"):
            continue
        recipe = Template(file.read_text(encoding="utf-8"))
        output = _text(_path(folder / MODELS_FOLDER / name.removesuffix(".yaml")))
        file_values = values | {"recipe": _for_shell(folder / name), "output": output}
        if set(recipe.get_identifiers()) <= file_values.keys():
            files[name] = recipe.substitute(file_values)
    if any(_SCRIPT in text for text in files.values()):
        files[_SCRIPT] = resources.files(__package__).joinpath(_SCRIPT).read_text(encoding="utf-8")
    return dict(sorted(files.items()))


def _steps(rows: int) -> str:
    steps = _EPOCHS * math.ceil(rows / _BATCH)
    short = f"; too few to get past {_WARMUP} steps of warm-up" if steps <= _WARMUP else ""
    return f"{rows:,} row{'s' if rows > 1 else ''}: {steps} steps{short}"


def _path(path: PurePath) -> str:
    return path.as_posix() if path.is_absolute() or path.parts[0] == ".." else f"./{path.as_posix()}"


def _for_shell(path: PurePath) -> str:
    return plain(shlex.quote(_path(path)))


def _text(value: str) -> str:
    """Returns a text in quotes, as YAML reads it."""
    return json.dumps(value, ensure_ascii=False)
