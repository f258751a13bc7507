"""Cultures that people add to a benchmark, and the benchmarks that are built of them.

A :class:`BuiltCulture` is a folder of data and task files without code, which any installation of this package runs as
a benchmark.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from culture_tasks import __version__
from culture_tasks.benchmarks.interface import Benchmark
from culture_tasks.data.sources import Source
from culture_tasks.errors import DataError
from culture_tasks.settings import culture_folders, user_cache_folder

if TYPE_CHECKING:
    from culture_tasks.judges.rubric.rubrics import Rubric

MANIFEST = "culture.json"
"""File that makes a folder a built culture."""

BUILT = "built"
"""Folder of a project in which its built culture is."""

NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
"""Names of cultures."""

_JOINERS = "\u200c\u200d"  # within words of Persian, Sinhala and other languages

DATA = "data"
"""Folder of a built culture that holds its tables, and its images in ``data/images``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A culture's names, language and place.

    Attributes:
        name: Its name in tasks and files: small letters, digits and underscores, such as ``korea``.
        title: Its name for readers, such as ``Korea``.
        like: Name of the benchmark that it is made like.
        way: Which of the form's ways, where it has several.
        language: Code of its language (ISO 639).
        place: Code of its country or region (ISO 3166, or one of :mod:`culture_tasks.vocabulary`).
    """

    name: str
    title: str
    like: str
    way: str = ""
    language: str
    place: str


class _Facts(dict[str, Any]):
    """The facts of a manifest, whose file is named where one is missing."""

    def __init__(self, facts: Mapping[str, Any], path: Path) -> None:
        super().__init__(facts)
        self._path = path

    def __missing__(self, name: str) -> Any:
        raise DataError(f"{self._path}, field 'facts': no {name!r}. Build the culture again.")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltCulture(Identity):
    """A built culture as it lies in its folder.

    Attributes:
        files: SHA-256 of each of its files but the manifest, by the path below the folder.
        marks: Warnings for readers of every score, one sentence each.
        facts: Values that its benchmark needs beside its tables.
    """

    folder: Path
    marks: Sequence[str]
    facts: Mapping[str, Any]
    files: Mapping[str, str]

    @property
    def manifest(self) -> dict[str, Any]:
        """Its manifest without the hashes of its files."""
        return {
            field.name: getattr(self, field.name) for field in fields(self) if field.name not in ("folder", "files")
        }

    @property
    def benchmark(self) -> str:
        """The name of its benchmark, with which those of its tasks begin, such as ``care_korea``."""
        return f"{self.like}_{self.name}"

    @property
    def task_files(self) -> Path:
        """The folder of the task files that run: those that this installation makes of the manifest.

        Those in the folder itself are for ``--include_path``. Since a harness runs what a task file says, those of a
        stranger are code.
        """
        content = [__version__, self.files, *self.manifest.values()]
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        return user_cache_folder() / "tasks" / f"{self.benchmark}-{digest[:16]}"

    def problems(self) -> list[str]:
        """Returns how its files differ from those that were built, each with what to do about it."""
        hashes = hashes_of(self.folder)
        advice = "Fetch the culture again, or build it again where its project is"
        changed = [name for name, digest in self.files.items() if name in hashes and hashes[name] != digest]
        return [
            *(f"{self.folder / name}: missing. {advice}." for name in self.files if name not in hashes),
            *(f"{self.folder / name}: not the file that was built (SHA-256). {advice}." for name in changed),
            *(f"{self.folder / name}: not a file of the culture. Remove it." for name in hashes.keys() - self.files),
        ]

    def source(self, stem: str, image_column: str | None = None) -> Source:
        """Returns the source of one of its tables, ``data/<stem>.json``."""
        return Source(folder=DATA, stems=(stem,), hub=None, image_column=image_column, root=self.folder)

    @classmethod
    def read(cls, folder: Path) -> BuiltCulture:
        """Reads the manifest of a folder.

        Raises:
            DataError: If it has none, or one that can't be used.
        """
        path = folder / MANIFEST
        names = [field.name for field in fields(cls) if field.name != "folder"]
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            values = {name: content[name] for name in names}
        except FileNotFoundError:
            raise DataError(
                f"{folder}: holds no {MANIFEST}. Expected a built culture: `culture-tasks culture build` makes one."
            ) from None
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(f"{path}: can't be read ({error}). Build the culture again.") from None
        except (KeyError, TypeError) as error:
            raise DataError(f"{path}: no field {error}. Build the culture again.") from None
        kinds = {name: {"marks": list, "facts": dict, "files": dict}.get(name, str) for name in names}
        fits = all(isinstance(values[name], kind) for name, kind in kinds.items())
        texts = [*(value for value in values.values() if isinstance(value, str)), *(values["marks"] if fits else ())]
        if not (fits and all(isinstance(text, str) and is_one_line(text) for text in texts)):
            raise DataError(f"{path}: holds fields of other types than those that are built. Fetch the culture again.")
        if not NAME.fullmatch(values["name"]):
            raise DataError(f"{path}, field 'name': found {values['name']!r}. Fetch the culture again.")
        return cls(folder=folder, **(values | {"facts": _Facts(values["facts"], path)}))


def is_one_line(text: str) -> bool:
    """Whether a text has no line breaks, control characters or marks that change the direction of writing."""
    return all(mark.isprintable() or mark in _JOINERS or unicodedata.category(mark) == "Zs" for mark in text)


def hashes_of(folder: Path) -> dict[str, str]:
    """Returns the SHA-256 of each file of a built culture but its manifest, by its path, sorted; hidden files aside."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MANIFEST)
    names = {path.relative_to(folder).as_posix(): path for path in files}
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in names.items()
        if not any(part.startswith(".") for part in name.split("/"))
    }


def built_cultures() -> list[Path]:
    """Returns the folders of built cultures below the user's folders, each once.

    A folder is a built culture, a project with one in ``built``, or holds any number of both.

    Raises:
        DataError: If one of the folders that ``CULTURE_TASKS_CULTURES`` names isn't there, or holds none.
    """
    cultures: dict[Path, None] = {}
    for folder in culture_folders():
        if not folder.is_dir():
            raise DataError(f"CULTURE_TASKS_CULTURES: {folder}: no such folder. Name existing ones, or unset it.")
        below = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
        candidates = [path for parent in below for path in (parent, parent / BUILT)]
        matches = [path for path in candidates if (path / MANIFEST).is_file()]
        if not matches:
            raise DataError(
                f"CULTURE_TASKS_CULTURES: {folder}: holds no built culture ({MANIFEST}). `culture-tasks culture build` "
                "makes one."
            )
        cultures.update(dict.fromkeys(path.resolve() for path in matches))
    return list(cultures)


class OffersCultures(ABC):
    """A benchmark to which people can add cultures."""

    @abstractmethod
    def culture(self, built: BuiltCulture) -> Benchmark:
        """Returns the benchmark of a built culture.

        Its name is :attr:`BuiltCulture.benchmark`, its task files are in :attr:`BuiltCulture.task_files`, and the names
        of its tasks begin with its own. It has the metrics and rubrics of this benchmark and none of its published
        numbers.
        """


class CultureBenchmark(Benchmark):
    """The benchmark of a built culture, which is graded as the one that it is like."""

    data = "own culture"

    def __init__(self, built: BuiltCulture, like: Benchmark) -> None:
        self.built, self.like = built, like
        self.name, self.title = built.benchmark, f"{like.title}, {built.title}"
        self.paper, self.judge = f"made like {like.paper}", like.judge
        self.made_from, self.marks = built.facts.get("made_from", ()), built.marks
        self.task_files = built.task_files

    def rubrics(self) -> Sequence[Rubric]:
        """Returns the rubrics of the benchmark that it is like."""
        return self.like.rubrics()
