"""The files of one run: its result file, the samples of its tasks, and a new run that is written beside it."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import jsonlines
from pydantic_core import from_json

from culture_tasks.errors import DataError
from culture_tasks.results.finding import Harness, Problem, parse_result_name, result_name, samples_name

GRADED_FROM = "rejudged_from"
"""Key in the configuration of a result file that was written by grading another one again."""

_OBJECTS = ("config", "configs", "group_subtasks", "groups", "higher_is_better", "n-samples", "n-shot", "versions")


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files of one run.

    Attributes:
        harness: Which harness wrote them, or in whose layout they are.
        result_file: The result file.
        stamp: What its name and the names of its sample files share.
        content: What the result file holds.
    """

    harness: Harness
    result_file: Path
    stamp: str
    content: dict[str, Any]

    @property
    def graded_from(self) -> Path | None:
        """The result file that this grading started from, or None for a run of the harness itself."""
        name = (self.content.get("config") or {}).get(GRADED_FROM)
        # Anybody may have written the name, and it mustn't lead out of the folder.
        if not isinstance(name, str) or not name or Path(name).name != name:
            return None
        return self.result_file.with_name(name)

    @property
    def time(self) -> datetime:
        """The time in the names of the files, to the second; of which zone is :attr:`zone`."""
        written = "%Y%m%d_%H%M%S" if self.harness == "lmms_eval" else "%Y-%m-%dT%H-%M-%S"
        return datetime.strptime(self.stamp.partition(".")[0], written)

    @property
    def zone(self) -> ZoneInfo | None:
        """The time zone of the names of the files, where the run says it: lmms-eval has an option for it."""
        options = (self.content.get("config") or {}).get("resolved_cli_args") or {}
        try:
            return ZoneInfo(str(options.get("timezone")))
        except (ValueError, ZoneInfoNotFoundError):
            return None

    def samples_file(self, task: str) -> Path:
        """Returns the file of a task's samples."""
        return self.result_file.parent / samples_name(self.harness, task, self.stamp)

    def logged_tasks(self) -> Iterator[str]:
        """Yields the tasks whose samples were logged."""
        for task in self.content.get("configs") or {}:
            if self.samples_file(task).is_file():
                yield task


def read_run(path: Path) -> RunFiles | Problem:
    """Reads a result file, or says why it can't be used."""
    name = parse_result_name(path)
    if name is None:
        return Problem(str(path), "foreign", "not the name of a result file")
    try:
        text = path.read_bytes()
        if not text.strip():
            return Problem(str(path), "empty", "nothing in it: the run was cut off")
        content = parse_json(text)
    except (OSError, ValueError) as error:
        return Problem(str(path), "damaged", f"not readable JSON ({error})")
    if isinstance(content, dict) and (later := _later_version(name.harness, content)):
        return Problem(str(path), "unknown_layout", later)
    if not isinstance(content, dict) or not isinstance(content.get("results"), dict):
        return Problem(str(path), "foreign", "it has no 'results', so no harness wrote it")
    for key in _OBJECTS:
        if not isinstance(content.get(key), dict | None):
            said = (
                f"not laid out as a harness does: found {type(content[key]).__name__} as {key!r}, needed is an object"
            )
            return Problem(str(path), "damaged", said)
    return RunFiles(harness=name.harness, result_file=path, stamp=name.stamp, content=content)


def _later_version(harness: Harness, content: Mapping[str, Any]) -> str:
    """Names a harness whose layout isn't known yet; empty where the file is of a version that is."""
    known = LAYOUTS[harness]
    said = content.get(known.key)
    if not isinstance(said, str):
        return ""
    found = _VERSION.match(said)
    if found is None or (int(found[1]), int(found[2])) < known.below:
        return ""
    name, below = harness.replace("_", "-"), ".".join(map(str, known.below))
    return f"written by {name} {said[:40]}; the layouts before {below} are known. Update culture-tasks"


class Layout(NamedTuple):
    """Which result files of a harness can be read.

    Attributes:
        key: Where they say the harness's version.
        below: The first version, as major and minor, whose layout isn't known.
    """

    key: str
    below: tuple[int, int]


LAYOUTS: Mapping[Harness, Layout] = {
    "lm_eval": Layout("lm_eval_version", (0, 5)),
    "lmms_eval": Layout("lmms_eval_version", (0, 8)),
}
_VERSION = re.compile(r"v?(\d{1,6})\.(\d{1,6})(?:\D|$)")
"""A version; lmms-eval writes the branch and commit of a checkout in its place, which tell nothing."""


def sample_lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yields the lines of a file that are not blank, each with its number from 1 and its offset.

    This and :func:`parse_json` are in place of ``jsonlines``: a report keeps the offset of each of millions of lines,
    to read a sample again when it is shown, and the fast parser takes bytes.
    """
    offset = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.isspace():
                yield number, offset, line
            offset += len(line)


def parse_json(text: bytes) -> Any:
    """Parses JSON; what the fast parser refuses, such as half of a surrogate pair, is tried again.

    Raises:
        ValueError: If it isn't JSON in UTF-8.
    """
    try:
        return from_json(text, cache_strings="keys")
    except ValueError:
        try:
            return json.loads(text)
        except RecursionError:
            raise ValueError("nested too deeply") from None


def read_samples(path: Path) -> list[dict[str, Any]]:
    """Reads logged samples.

    Raises:
        DataError: If a line is not a JSON object.
    """
    samples: list[dict[str, Any]] = []
    for number, _, line in sample_lines(path):
        try:
            sample = parse_json(line)
        except ValueError as error:
            said = error.msg if isinstance(error, json.JSONDecodeError) else error
            raise DataError(f"{path}, line {number}: not JSON ({said}). The file may be cut off.") from None
        if not isinstance(sample, dict):
            raise DataError(f"{path}, line {number}: found {type(sample).__name__}. Needed is an object.")
        samples.append(sample)
    return samples


def new_run(old: RunFiles, content: dict[str, Any], now: datetime) -> RunFiles:
    """Returns a run beside an old one, named by the time as its harness does; nothing is written yet.

    The time is of the old run's zone, and later than its own, so that the newest files sort last.
    """
    now = max(now.astimezone(old.zone).replace(tzinfo=None), old.time + timedelta(seconds=1))
    while True:
        stamp = now.strftime("%Y%m%d_%H%M%S") if old.harness == "lmms_eval" else now.isoformat().replace(":", "-")
        path = old.result_file.with_name(result_name(old.harness, stamp))
        if not path.exists():
            return RunFiles(harness=old.harness, result_file=path, stamp=stamp, content=content)
        now += timedelta(seconds=1)


def write_samples(path: Path, samples: Iterable[Mapping[str, Any]]) -> None:
    """Writes samples, one JSON object a line; the file appears whole or not at all."""
    with _whole(path) as file, jsonlines.Writer(file) as writer:
        writer.write_all(samples)


def write_result_file(run: RunFiles) -> None:
    """Writes a run's result file, last of its files; it appears whole or not at all."""
    with _whole(run.result_file) as file:
        json.dump(run.content, file, indent=2, ensure_ascii=False)


@contextmanager
def _whole(path: Path) -> Iterator[IO[str]]:
    """Opens a file that takes its name once everything is in it."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        # Half of a surrogate pair isn't UTF-8; with backslashreplace it is written as JSON writes it: \ud800.
        with part.open("w", encoding="utf-8", errors="backslashreplace") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
