"""Which items of tests a model was trained on: what the manifest of its preference data says.

``culture-tasks preferences build`` writes the manifest, and its recipes put models into folders below it. It is looked
for in the local folder that a result file names, and in a few above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from culture_tasks.errors import DataError, SettingsError, hint
from culture_tasks.results.finding import UnusedFile
from culture_tasks.results.task_results import TaskResult
from culture_tasks.results.training_manifest import FILE_NAME, Manifest

LEVELS_ABOVE = 3
"""How many folders above a model's the manifest may be: a checkpoint is DIR/models/NAME/checkpoint-100."""


class TrainedOn:
    """Knows what models were trained on: the user's ``MODEL=DIR`` pairs, a pattern and the folder of data, and more."""

    def __init__(self, chosen: Sequence[str] = ()) -> None:
        self._chosen: list[tuple[str, str, Manifest]] = []
        for text in chosen:
            pattern, _, folder = (part.strip() for part in text.partition("="))
            if not pattern or not folder:
                raise SettingsError(
                    f"--trained-on {text!r} isn't MODEL=DIR. Expected, say, --trained-on 'dpo-zh-*=preferences/zh'; "
                    "write ? for an = in the name of a model."
                )
            try:
                manifest = Manifest.load(Path(folder).expanduser())
            except DataError as error:
                raise DataError(f"--trained-on {text}: {error}") from None
            self._chosen.append((text, pattern, manifest))
        self._fitting: set[str] = set()
        self._models: set[str] = set()
        self._by_folder: dict[str, Manifest | None] = {}

    def items(self, result: TaskResult, model: str, problems: list[UnusedFile]) -> dict[str, set[str]]:
        """Returns the items of tests that the model of a result was trained on, by task; notes unusable manifests.

        Items of own data may have the names of the release's: a manifest of the release says nothing of them.
        """
        self._models.add(model)
        manifests: list[Manifest | None] = []
        for text, pattern, manifest in self._chosen:
            if any(fnmatchcase(name, pattern) for name in (model, result.model)):
                self._fitting.add(text)
                manifests.append(manifest)
        for folder in dict.fromkeys((result.model, result.pretrained, result.adapter)):
            if folder not in self._by_folder:
                self._by_folder[folder] = _beside(folder, problems)
            manifests.append(self._by_folder[folder])
        items: dict[str, set[str]] = {}
        for known in manifests:
            if known is not None and (known.own_data or not result.own_data):
                for task, names in known.tested_items.items():
                    items.setdefault(task, set()).update(names)
        return items

    def refuse_unfitting(self) -> None:
        """Raises a SettingsError for a pattern that fitted no model."""
        for text, pattern, _ in self._chosen:
            if self._models and text not in self._fitting:
                raise SettingsError(
                    f"--trained-on {text}: {pattern} fits no model.{hint(pattern, sorted(self._models))}"
                )


def _beside(folder: str, problems: list[UnusedFile]) -> Manifest | None:
    """Returns the nearest manifest of a model's folder; None without a usable one."""
    try:
        start = Path(folder).absolute()
        is_local = bool(folder) and start.is_dir()
    except (OSError, ValueError):  # a text that no path can be: too long, with a null character
        return None
    for level in (start, *list(start.parents)[:LEVELS_ABOVE]) if is_local else ():
        path = level / FILE_NAME
        if path.is_file():
            try:
                return Manifest.load(path)
            except DataError as error:
                reason = str(error).removeprefix(f"{path}")
                problems.append(UnusedFile(str(path), "foreign", f"so the training items aren't known: {reason}"))
    return None
