"""The files of one run: its result file, the samples of its tasks, and a new run that is written beside it."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import jsonlines

from culture_tasks.errors import DataError
from culture_tasks.plain_files import read_plain, written
from culture_tasks.results.finding import Harness, UnusedFile, parse_name, result_name, samples_name
from culture_tasks.results.samples import LoggedSample, parse_json, samples_of

_log = logging.getLogger(__name__)

GRADED_FROM = "rejudged_from"
"""Key in the configuration of a result file that was written by grading another one again."""

SAMPLED = "rejudged_sample"
"""Key in the configuration of a result file that has a draw of the responses of another one: how many were wanted."""


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

    def counts(self, task: str, above: frozenset[str] = frozenset()) -> tuple[int | None, int | None]:
        """Returns the number of all items of a task and of those that were run; None where the file doesn't say.

        The numbers of a group, which no harness writes, are sums over its tasks. Raises a ValueError for other values.
        """
        counts = (self.content.get("n-samples") or {}).get(task) or {}
        members = (self.content.get("group_subtasks") or {}).get(task) or ()
        if members and not counts:
            parts = [self.counts(name, above | {task}) for name in members if name not in above] or [(None, None)]
            known = [(whole, run) for whole, run in parts if whole is not None and run is not None]
            return (sum(part[0] for part in known), sum(part[1] for part in known)) if known == parts else (None, None)
        original, effective = counts.get("original"), counts.get("effective")
        for count in (original, effective):
            if count is not None and (type(count) is not int or not 0 <= count < 10**9):
                raise ValueError(f"found {str(count)[:40]!r} as a number of samples")
        offset = (self.content.get("config") or {}).get("offset")  # lmms-eval leaves it out of its number
        if original is not None and effective is not None and type(offset) is int:
            effective = min(effective, max(original - offset, 0))
        return original, effective

    def samples(self, task: str) -> Iterator[LoggedSample]:
        """Yields the samples of a task; raises a DataError if the file lacks some of the run."""
        try:
            expected = self.counts(task)[1]
        except (ValueError, AttributeError) as error:
            raise DataError(f"{self.result_file}, field 'n-samples': {error}. The file is damaged.") from None
        return samples_of(self.samples_file(task), expected)

    def logged_tasks(self) -> list[str]:
        """Returns the tasks whose samples were logged; where that isn't all of them, a warning names the others."""
        tasks = list(self.content.get("configs") or {})
        logged = [task for task in tasks if self.samples_file(task).is_file()]
        if missing := [task for task in tasks if task not in logged] if logged else []:
            _log.warning("%s: no samples of %s beside it: left out", self.result_file, ", ".join(missing))
        return logged


def read_run(path: Path) -> RunFiles | UnusedFile:
    """Reads a result file, or says why it can't be used."""
    name = parse_name(path)
    if name is None or name.task:
        return UnusedFile(str(path), "foreign", "not the name of a result file")
    try:
        text = read_plain(path)
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
    with written(path) as file, jsonlines.Writer(file) as writer:
        writer.write_all(samples)


def write_result_file(run: RunFiles) -> None:
    """Writes a run's result file, last of its files; it appears whole or not at all."""
    with written(run.result_file) as file:
        json.dump(run.content, file, indent=2, ensure_ascii=False)
