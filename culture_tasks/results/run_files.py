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
from typing import IO, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import jsonlines

from culture_tasks.results.finding import Harness, UnusedFile, parse_name, result_name, samples_name
from culture_tasks.results.samples import parse_json

GRADED_FROM = "rejudged_from"
"""Key in the configuration of a result file that was written by grading another one again."""


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files of one run, in the layout of a harness: the result file and its content, and the stamp of all names."""

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
        layout = "%Y%m%d_%H%M%S" if self.harness == "lmms_eval" else "%Y-%m-%dT%H-%M-%S"
        return datetime.strptime(self.stamp.partition(".")[0], layout)

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

    def logged_tasks(self) -> list[str]:
        """Returns the tasks whose samples were logged."""
        return [task for task in self.content.get("configs") or {} if self.samples_file(task).is_file()]


def read_run(path: Path) -> RunFiles | UnusedFile:
    """Reads a result file, or says why it can't be used."""
    name = parse_name(path)
    if name is None or name.task:
        return UnusedFile(str(path), "foreign", "not the name of a result file")
    try:
        text = path.read_bytes()
        if not text.strip():
            return UnusedFile(str(path), "empty", "nothing in it: the run was cut off")
        content = parse_json(text)
    except (OSError, ValueError) as error:
        return UnusedFile(str(path), "damaged", f"not readable JSON ({error})")
    if isinstance(content, dict) and (later := _later_version(name.harness, content)):
        return UnusedFile(str(path), "unknown_layout", later)
    if not isinstance(content, dict) or not isinstance(content.get("results"), dict):
        return UnusedFile(str(path), "foreign", "it has no 'results', so no harness wrote it")
    return RunFiles(harness=name.harness, result_file=path, stamp=name.stamp, content=content)


LAYOUTS: Mapping[Harness, tuple[str, tuple[int, int]]] = {
    "lm_eval": ("lm_eval_version", (0, 5)),
    "lmms_eval": ("lmms_eval_version", (0, 8)),
}
"""Where a result file says its harness's version, and the first one, as major and minor, whose layout isn't known."""


def _later_version(harness: Harness, content: Mapping[str, Any]) -> str:
    """Names a harness whose layout isn't known yet; empty for a known one, and for a checkout's branch and commit."""
    key, first_unknown = LAYOUTS[harness]
    version = str(content.get(key))
    match = re.match(r"v?(\d+)\.(\d+)(?:\D|$)", version)
    if match is None or (int(match[1]), int(match[2])) < first_unknown:
        return ""
    limit = ".".join(map(str, first_unknown))
    return (
        f"written by {harness.replace('_', '-')} {version[:40]}; the layouts before {limit} are known. "
        "Update culture-tasks"
    )


def new_run(old: RunFiles, content: dict[str, Any], now: datetime) -> RunFiles:
    """Returns a run beside an old one, named as its harness does by a later time of the same zone; writes nothing."""
    now = max(now.astimezone(old.zone).replace(tzinfo=None), old.time + timedelta(seconds=1))
    while True:
        stamp = now.strftime("%Y%m%d_%H%M%S") if old.harness == "lmms_eval" else now.isoformat().replace(":", "-")
        path = old.result_file.with_name(result_name(old.harness, stamp))
        if not path.exists():
            return RunFiles(harness=old.harness, result_file=path, stamp=stamp, content=content)
        now += timedelta(seconds=1)


def write_samples(path: Path, samples: Iterable[Mapping[str, Any]]) -> None:
    """Writes samples, one JSON object a line; the file appears whole or not at all."""
    with atomic_file(path) as file, jsonlines.Writer(file) as writer:
        writer.write_all(samples)


def write_result_file(run: RunFiles) -> None:
    """Writes a run's result file, last of its files; it appears whole or not at all."""
    with atomic_file(run.result_file) as file:
        json.dump(run.content, file, indent=2, ensure_ascii=False)


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[str]]:
    """Opens a file that takes its name, and the place of a link, once everything is in it."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        # Half of a surrogate pair isn't UTF-8; with backslashreplace it is written as JSON writes it: \ud800.
        with part.open("w", encoding="utf-8", errors="backslashreplace") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
