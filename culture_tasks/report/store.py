"""The samples behind the numbers, read from their files when they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from culture_tasks.report.benchmarks import LAYOUTS, Layout, Record
from culture_tasks.report.columns import Columns
from culture_tasks.report.loading import LoadedRun
from culture_tasks.report.model import Sample
from culture_tasks.report.samples import record_of
from culture_tasks.results.run_files import parse_json


class FileSamples:
    """The samples of a report's runs: their places are in memory, their texts in the files."""

    def __init__(self, runs: Iterable[LoadedRun]) -> None:
        self._runs: dict[str, tuple[Path, Layout, Columns]] = {
            each.run.key: (each.result.samples_file.absolute(), LAYOUTS[each.run.benchmark], each.columns)
            for each in runs
            if each.columns is not None and each.run.benchmark is not None
        }

    def count(self, run: str, where: Sequence[tuple[str, str]] = ()) -> int:
        """Returns how many samples of a run belong to these groups, without opening a file."""
        return len(self._rows(run, where))

    def read(self, run: str, where: Sequence[tuple[str, str]] = (), limit: int | None = None) -> Iterator[Sample]:
        """Yields samples of a run that belong to these groups, in the order of the file, at most ``limit``.

        A line that has changed since the report was made is left out.

        Raises:
            OSError: If the file has gone.
        """
        rows = self._rows(run, where)[:limit]
        if not len(rows):
            return
        path, layout, columns = self._runs[run]
        with path.open("rb") as file:
            for row in rows:
                file.seek(int(columns.offsets[row]))
                try:
                    found = record_of(parse_json(file.readline()), layout.keys)
                except (ValueError, AttributeError):
                    continue
                if found is not None:
                    groups = {name: coded.names[coded.codes[row]] for name, coded in columns.groups.items()}
                    yield _sample(run, found[1], groups, float(columns.scores[row]))

    def _rows(self, run: str, where: Sequence[tuple[str, str]]) -> Sequence[int]:
        if run not in self._runs:
            return ()
        rows: list[int] = np.flatnonzero(self._runs[run][2].where(where)).tolist()
        return rows


def _sample(run: str, record: Record, groups: Mapping[str, str], score: float) -> Sample:
    first = (record.get("runs") or [{}])[0]
    return Sample(
        run=run,
        item=str(record["item"]),
        question=str(record.get("question", "")),
        references=tuple(str(text) for text in record.get("references") or ()),
        response=str(first.get("response", "")),
        outcome=str(first.get("outcome", "")),
        score=None if np.isnan(score) else score,
        rationale=_text(first.get("rationale") or first.get("error") or first.get("completion") or first.get("label")),
        groups={name: value for name, value in groups.items() if value},
        image=_text(record.get("image")),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)
