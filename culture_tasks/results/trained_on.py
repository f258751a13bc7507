"""Which items of tests a model was trained on, and which models were trained from which.

``culture-tasks preferences build`` writes a manifest of its data, and its recipes put models into folders below it. It
is looked for in the local folder that a result file names, and in a few above it. A model was trained from another if
the user says so, or if it is an adapter beside the model that it was put on.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import BaseModel, ValidationError

from culture_tasks.errors import DataError, SettingsError, hint
from culture_tasks.plain_files import read_plain
from culture_tasks.results.finding import UnusedFile
from culture_tasks.results.patterns import ModelPatterns, pair
from culture_tasks.results.runs import Run
from culture_tasks.text import tokens

if TYPE_CHECKING:
    from culture_tasks.results.loading import Results

FILE_NAME = "manifest.json"
FORMAT: Literal[1] = 1
"""Version of the layout; raised with every change that an older reader would misread."""


class Manifest(BaseModel, extra="ignore", frozen=True):
    """What results need to know of a manifest, which says more about the data: items of tests among it, by task.

    ``own_data`` says whether tests were read from the user's own data rather than from the benchmark's release.
    """

    format: Literal[1]
    tested_items: Mapping[str, tuple[str, ...]]
    own_data: bool

    @classmethod
    def load(cls, path: Path) -> Manifest:
        """Reads a manifest, or that of a folder; a DataError says that it is missing, broken, or of a later version."""
        file = path / FILE_NAME if path.is_dir() else path
        try:
            return cls.model_validate_json(read_plain(file))
        except OSError as error:
            problem = f"can't be read ({error.strerror})"
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            problem = ", ".join(filter(None, ("not a manifest", ".".join(map(str, first["loc"])), first["msg"])))
        raise DataError(
            f"{file}: {problem}. Expected the manifest, format {FORMAT}, of a folder that `culture-tasks preferences "
            "build` wrote."
        )


@lru_cache(maxsize=1_000)  # the rows of a question mostly follow each other
def question_fingerprint(question: str) -> str:
    """Returns the identity of a question: the same without case, punctuation, width and Arabic diacritics."""
    normalised = " ".join(tokens(question)) or unicodedata.normalize("NFKC", question).strip()
    return hashlib.sha256(normalised.encode("utf-8", "replace")).hexdigest()[:16]


_LEVELS_ABOVE = 3
"""How many folders above a model's the manifest may be: a checkpoint is DIR/models/NAME/checkpoint-100."""


class TrainingManifests:
    """The manifests of models' training data: those of the user's ``MODEL=DIR`` pairs, and those beside models."""

    def __init__(self, pairs: Sequence[str] = ()) -> None:
        self._patterns = ModelPatterns("--trained-on", pairs, "dpo-zh-*=preferences/zh")
        self._by_folder: dict[str, Manifest | None] = {}
        for text, _, folder in self._patterns.pairs:
            try:
                self._by_folder[folder] = Manifest.load(Path(folder).expanduser())
            except DataError as error:
                raise DataError(f"--trained-on {text}: {error}") from None

    def refuse_unfitting(self) -> None:
        """Raises a SettingsError for a pair of the user that fits no model."""
        self._patterns.refuse_unfitting()

    def items(self, run: Run, problems: list[UnusedFile]) -> dict[str, set[str]]:
        """Returns the items of tests that the model of a run was trained on, by task; notes unusable manifests.

        Items of own data may have the names of the release's: a manifest of the release says nothing of them.
        """
        folders = [*self._patterns.values(run.model, run.model_name), run.model_name, run.pretrained, run.adapter]
        items: dict[str, set[str]] = {}
        for folder in dict.fromkeys(folders):
            if folder not in self._by_folder:
                self._by_folder[folder] = _beside(folder, problems)
            manifest = self._by_folder[folder]
            if manifest is not None and (manifest.own_data or not run.own_data):
                for task, names in manifest.tested_items.items():
                    items.setdefault(task, set()).update(names)
        return items


def _beside(folder: str, problems: list[UnusedFile]) -> Manifest | None:
    """Returns the nearest manifest of a model's folder; None without a usable one."""
    try:
        start = Path(folder).absolute()
        is_local = bool(folder) and start.is_dir()
    except (OSError, ValueError):  # a text that no path can be: too long, with a null character
        return None
    for level in (start, *list(start.parents)[:_LEVELS_ABOVE]) if is_local else ():
        path = level / FILE_NAME
        if path.is_file():
            try:
                return Manifest.load(path)
            except DataError as error:
                reason = str(error).removeprefix(f"{path}: ")
                problems.append(UnusedFile(str(path), "foreign", f"so the training items aren't known: {reason}"))
    return None


class Lineage(NamedTuple):
    """The rows of a model before training, and after it."""

    base: tuple[str, ...]
    trained: tuple[str, ...]


def lineages(results: Results, pairs: Sequence[str]) -> list[Lineage]:
    """Returns the pairs of base and trained model, those of one base together.

    A run with an adapter (``peft=``, ``lora_local_path=``) was trained from the model that it names beside it, unless a
    ``TRAINED=BASE`` pair of patterns by the user says otherwise.
    """
    stated = [_stated_lineage(results, text) for text in dict.fromkeys(pairs)]
    trained = {row for lineage in stated for row in lineage.trained}
    bases: dict[str, list[str]] = {}
    adapters: dict[tuple[str, str], list[str]] = {}  # by the weights below them, and the model
    for key, row in results.rows.items():
        runs = results.of(key).values()
        weights = {run.pretrained for run in runs}
        base = weights.pop() if len(weights) == 1 else ""
        if all(run.adapter for run in runs) and key not in trained:
            adapters.setdefault((base, row.model), []).append(key)
        elif not any(run.adapter or "method" in dict(run.arguments) for run in runs):
            bases.setdefault(base, []).append(key)
    by_adapter = [
        Lineage(tuple(bases[base]), tuple(rows)) for (base, _), rows in adapters.items() if base and base in bases
    ]
    order = list(results.rows)
    return sorted((*stated, *by_adapter), key=lambda lineage: [order.index(rows[0]) for rows in lineage])


def _stated_lineage(results: Results, text: str) -> Lineage:
    trained, base = pair("report: --trained", text, "dpo-zh-*=Qwen2.5-7B")
    after, before = (_fitting(results, pattern, text) for pattern in (trained, base))
    before = [row for row in before if row not in after]
    if not before:
        raise SettingsError(f"report: --trained {text}: {base} fits no model but the trained ones. Name their base.")
    return Lineage(tuple(before), tuple(after))


def _fitting(results: Results, pattern: str, text: str) -> list[str]:
    """Returns the rows whose model a pattern fits: its name in the report or in the result file, or its label."""
    fitting = []
    for key, row in results.rows.items():
        names = (row.model, row.label, *(run.model_name for run in results.of(key).values()))
        if any(fnmatchcase(name, pattern) for name in names):
            fitting.append(key)
    if not fitting:
        models = list(dict.fromkeys(row.model for row in results.rows.values()))
        raise SettingsError(f"report: --trained {text}: {pattern} fits no model.{hint(pattern, models)}")
    return fitting
