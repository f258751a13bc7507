"""Which items of tests a model was trained on: what the manifest of its preference data says.

``culture-tasks preferences build`` writes the manifest, and its recipes put models into folders below it. The paths in
result files are whatever somebody wrote there: nothing but a regular file of the manifest's name is read, in a local
folder that such a path names and in a few above it.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from culture_tasks.errors import DataError, SettingsError, nearest
from culture_tasks.preferences.manifest import FILE_NAME, Manifest
from culture_tasks.results.finding import Problem
from culture_tasks.results.task_results import TaskResult

LEVELS_ABOVE = 3
"""How many folders above a model's the manifest may be: a checkpoint is DIR/models/NAME/checkpoint-100."""

LARGEST = 64 * 2**20
"""Largest manifest that is looked for, in bytes: one of a million questions has 20 MB."""

_MOST_NAMED = 20


class TrainedOn:
    """Knows what models were trained on."""

    def __init__(self, chosen: Sequence[str] = ()) -> None:
        """Takes ``MODEL=DIR`` pairs: a pattern of models, and the folder of the data that they were trained on.

        Raises:
            SettingsError: If one of them is no such pair.
            DataError: If a folder has no manifest that can be read.
        """
        self._chosen: list[tuple[str, str, Manifest]] = []
        for text in chosen:
            pattern, _, folder = (part.strip() for part in text.partition("="))
            if not pattern or not folder:
                raise SettingsError(
                    f"--trained-on {text!r} isn't MODEL=DIR. Needed is, say, --trained-on 'dpo-zh-*=preferences/zh'; "
                    "write ? for an = in the name of a model."
                )
            try:
                manifest = Manifest.load(Path(folder).expanduser())
            except DataError as error:
                raise DataError(f"--trained-on {text}: {error}") from None
            self._chosen.append((text, pattern, manifest))
        self._fitting: set[str] = set()
        self._models: set[str] = set()
        self._found: dict[str, Manifest | None] = {}

    def items(self, result: TaskResult, model: str, problems: list[Problem]) -> dict[str, set[str]]:
        """Returns the items of tests that the model of a result was trained on, by task.

        Items of own data may have the names of the release's: a manifest of the release says nothing of them.

        Args:
            result: The result.
            model: The model's name in the report.
            problems: Gets the files that have a manifest's name and can't be used, each once.
        """
        self._models.add(model)
        known: list[Manifest | None] = []
        for text, pattern, manifest in self._chosen:
            if any(fnmatchcase(name, pattern) for name in (model, result.model)):
                self._fitting.add(text)
                known.append(manifest)
        for folder in dict.fromkeys((result.model, result.pretrained, result.adapter)):
            if folder not in self._found:
                self._found[folder] = _beside(folder, problems)
            known.append(self._found[folder])
        found: dict[str, set[str]] = {}
        for each in known:
            if each is not None and (each.own_data or not result.own_data):
                for task, items_of_task in each.tested_items.items():
                    found.setdefault(task, set()).update(items_of_task)
        return found

    def refuse_unfitting(self) -> None:
        """Makes sure that each pattern fitted a model.

        Raises:
            SettingsError: If one didn't.
        """
        for text, pattern, _ in self._chosen:
            if self._models and text not in self._fitting:
                models = sorted(self._models)
                raise SettingsError(
                    f"--trained-on {text}: {pattern} fits no model.{nearest(pattern, models)} "
                    f"There are {', '.join(models[:_MOST_NAMED])}{', …' if len(models) > _MOST_NAMED else ''}."
                )


def _beside(folder: str, problems: list[Problem]) -> Manifest | None:
    """Returns the nearest manifest of a model's folder; None where there is none that can be used."""
    for path in _candidates(folder):
        reason = _why_unusable(path)
        if reason is None:
            continue
        if not reason:
            try:
                return Manifest.load(path)
            except DataError as error:
                reason = str(error).removeprefix(f"{path}")
        problems.append(Problem(str(path), "foreign", f"so what was trained on it isn't known: {reason}"))
    return None


def _candidates(folder: str) -> Iterator[Path]:
    """Yields where the manifest of a model may be; nothing where the text isn't the path of a local folder."""
    try:
        start = Path(folder).absolute()
        is_local = bool(folder) and not folder.startswith(("//", "\\\\")) and start.is_dir()
    except (OSError, ValueError):  # a text that no path can be: too long, with a null character
        return
    if is_local:
        for level in (start, *list(start.parents)[:LEVELS_ABOVE]):
            yield level / FILE_NAME


def _why_unusable(path: Path) -> str | None:
    """Returns why a file isn't read, an empty text where it can be, or None where there is none."""
    try:
        found = path.lstat()
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(found.st_mode):
        return "not a regular file"
    return f"larger than {LARGEST // 2**20} MiB" if found.st_size > LARGEST else ""
