"""The samples of runs as their files have them, for a reader's eyes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from culture_tasks.benchmarks.reporting import NO_GROUP, Codes, Floats, Where
from culture_tasks.errors import DataError
from culture_tasks.plain_files import open_plain
from culture_tasks.results.reading import Samples
from culture_tasks.results.runs import Run
from culture_tasks.results.samples import LoggedSample, Record


@dataclass(frozen=True, slots=True)
class Sample:
    """One logged sample, for a reader's eyes, at its place among the run's samples, with the first response.

    Attributes:
        outcome: How grading ended; without a judge ``unparsable`` is a wrong answer.
        score: On the unit's scale; None unless scored.
        rationale: The judge's reasons; without a judge the label that was read from the response.
        image: Id of its image.
        doubt: Why the judge's verdict is doubtful; empty where it isn't, or where no judge graded.
    """

    run: str
    place: int
    item: str
    question: str
    references: tuple[str, ...]
    response: str
    outcome: str
    score: float | None
    rationale: str | None
    groups: Mapping[str, str]
    image: str | None = None
    prompt: str | None = None
    doubt: str = ""


class RunRows(NamedTuple):
    """Samples of one run as columns, without their texts: places, items numbered alike in all runs, scores or NaN."""

    places: NDArray[np.intp]
    items: Codes
    scores: Floats


class FileSamples:
    """The samples of runs in their files, by the key of the run."""

    def __init__(self, runs: Iterable[Run], samples: Samples) -> None:
        files = {run.key: (run.samples_file.absolute(), run.samples) for run in runs if run.has_samples}
        self._files = {key: (path, summary) for key, (path, summary) in files.items() if summary}
        self._samples = samples

    def rows(self, run: str, where: Where = ()) -> RunRows:
        """Returns the samples of a run that belong to these groups, without opening a file."""
        if run not in self._files:
            return RunRows(np.zeros(0, np.intp), np.zeros(0, np.int32), np.zeros(0))
        all_rows = self._files[run][1].rows
        rows = self._samples.where(all_rows, where)
        return RunRows(rows - all_rows.start, self._samples.item[rows], self._samples.score[rows])

    def read(self, run: str, places: Iterable[int] | None = None) -> Iterator[Sample]:
        """Yields samples of a run by their places in its file, all of them in the file's order for None.

        A line that has changed since the report was made is left out. A file that has gone raises OSError.
        """
        if run not in self._files:
            return
        path, summary = self._files[run]
        with open_plain(path) as file:
            for place in range(summary.n) if places is None else places:
                offset = int(self._samples.offset[summary.rows.start + place])
                file.seek(offset)
                try:
                    yield self._sample(run, LoggedSample(path, place + 1, offset, file.readline()), place)
                except DataError:
                    continue

    def _sample(self, run: str, logged: LoggedSample, place: int) -> Sample:
        record, row = logged.record, self._files[run][1].rows.start + place
        first, score = record.runs[0], float(self._samples.score[row])
        return Sample(
            run=run,
            place=place,
            item=record.item,
            question=record.question,
            references=record.references,
            response=first.response,
            outcome=first.outcome,
            score=None if math.isnan(score) else score,
            rationale=first.rationale or first.error or first.completion or first.label,
            groups={name: NO_GROUP if group is None else group for name, group in record.groups.items()},
            image=record.image or None,
            prompt=logged.prompt,
            doubt="; ".join(_doubts(record)),
        )


def _doubts(record: Record) -> Iterator[str]:
    """Yields reasons to look at a judge's verdict twice; nothing where no judge graded."""
    if record.judge is None:
        return
    if missing := sorted({run.outcome for run in record.runs} - {"scored", "unjudged"}):
        yield f"no verdict: {', '.join(missing)}"
    if any(run.asked_again for run in record.runs):
        yield "the judge was reminded of the format"
    ratings = [run.rating for run in record.runs if run.rating is not None]
    if len(set(ratings)) > 1:
        yield f"ratings from {min(ratings):g} to {max(ratings):g} over {len(record.runs)} responses"
