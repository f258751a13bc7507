"""A second look at the samples of a report, for a reader: their places are in memory, their texts in the files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from culture_tasks.errors import DataError
from culture_tasks.results.columns import Columns
from culture_tasks.results.runs import RunRows, Sample
from culture_tasks.results.samples import LoggedSample, Record


class FileSamples:
    """The samples of runs in their files, by run, each with the columns that were read of it."""

    def __init__(self, files: Mapping[str, tuple[Path, Columns]]) -> None:
        self._files = {run: (path.absolute(), columns) for run, (path, columns) in files.items()}

    def rows(self, run: str, where: Sequence[tuple[str, str]] = ()) -> RunRows:
        """Returns the samples of a run that belong to these groups, without opening a file."""
        if run not in self._files:
            return RunRows(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0))
        columns = self._files[run][1]
        mask = columns.where(where)
        return RunRows(np.flatnonzero(mask), columns.items[mask], columns.scores[mask])

    def read(self, run: str, places: Iterable[int] | None = None) -> Iterator[Sample]:
        """Yields samples of a run by their places in its file, all of them in the file's order for None.

        A line that has changed since the report was made is left out. A file that has gone raises OSError.
        """
        if run not in self._files:
            return
        path, columns = self._files[run]
        with path.open("rb") as file:
            for place in range(columns.items.size) if places is None else places:
                offset = int(columns.offsets[place])
                file.seek(offset)
                try:
                    yield _sample(run, LoggedSample(path, place + 1, offset, file.readline()), columns, place)
                except DataError:
                    continue


def _sample(run: str, logged: LoggedSample, columns: Columns, place: int) -> Sample:
    record = logged.record
    first = record.runs[0]
    groups = {field: texts.names[texts.codes[place]] for field, texts in columns.groups.items()}
    score = float(columns.scores[place])
    return Sample(
        run=run,
        place=place,
        item=record.item,
        question=record.question,
        references=record.references,
        response=first.response,
        outcome=first.outcome,
        score=None if np.isnan(score) else score,
        rationale=first.rationale or first.error or first.completion or first.label,
        groups={field: group for field, group in groups.items() if group},
        image=record.image or None,
        prompt=logged.prompt,
        doubt="; ".join(_doubts(record)),
    )


def _doubts(record: Record) -> Iterator[str]:
    """Yields why a judge's verdict is to be looked at twice; nothing where no judge graded."""
    if record.judge is None:
        return
    if missing := sorted({run.outcome for run in record.runs} - {"scored", "unjudged"}):
        yield f"no verdict: {', '.join(missing)}"
    if any(run.asked_again for run in record.runs):
        yield "the judge was reminded of the format"
    ratings = [run.rating for run in record.runs if run.rating is not None]
    if len(set(ratings)) > 1:
        yield f"ratings from {min(ratings):g} to {max(ratings):g} over {len(record.runs)} responses"
