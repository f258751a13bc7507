"""A second look at the samples of a report, for a reader: their places are in memory, their texts in the files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from culture_tasks.report.runs import Rows, Sample
from culture_tasks.report.samples import Columns, Record, record_of
from culture_tasks.results.run_files import parse_json

_NOTHING = Rows(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0))


class FileSamples:
    """The samples of runs in their files."""

    def __init__(self, files: Mapping[str, tuple[Path, Columns]]) -> None:
        """Takes the sample file of each run, with its columns."""
        self._files = {run: (path.absolute(), columns) for run, (path, columns) in files.items()}

    def rows(self, run: str, where: Sequence[tuple[str, str]] = ()) -> Rows:
        """Returns the samples of a run that belong to these groups, without opening a file."""
        if run not in self._files:
            return _NOTHING
        columns = self._files[run][1]
        mask = columns.where(where)
        return Rows(np.flatnonzero(mask), columns.items[mask], columns.scores[mask])

    def read(self, run: str, places: Iterable[int] | None = None) -> Iterator[Sample]:
        """Yields samples of a run by their places in its file, all of them in the file's order for None.

        A line that has changed since the report was made is left out.

        Raises:
            OSError: If the file has gone.
        """
        if run not in self._files:
            return
        path, columns = self._files[run]
        with path.open("rb") as file:
            for place in range(columns.items.size) if places is None else places:
                file.seek(int(columns.offsets[place]))
                try:
                    line = parse_json(file.readline())
                    found = record_of(line)
                    if found is not None:
                        yield _sample(run, found[1], prompt=_prompt(line), columns=columns, place=place)
                except (ValueError, AttributeError, KeyError, TypeError):
                    continue


def _sample(run: str, record: Record, prompt: str | None, columns: Columns, place: int) -> Sample:
    runs = record.get("runs") or [{}]
    first = runs[0]
    groups = {field: texts.names[texts.codes[place]] for field, texts in columns.groups.items()}
    score = float(columns.scores[place])
    return Sample(
        run=run,
        place=place,
        item=str(record["item"]),
        question=str(record.get("question", "")),
        references=tuple(str(text) for text in record.get("references") or ()),
        response=str(first.get("response", "")),
        outcome=str(first.get("outcome", "")),
        score=None if np.isnan(score) else score,
        rationale=_text(first.get("rationale") or first.get("error") or first.get("completion") or first.get("label")),
        groups={field: group for field, group in groups.items() if group},
        image=_text(record.get("image")),
        prompt=prompt,
        doubt="; ".join(_doubts(record, runs)),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _prompt(line: Mapping[str, Any]) -> str | None:
    """Returns what the model was sent, as the harness logged it; messages of a chat as JSON, None without any."""
    sent = line.get("input")
    if sent is None:  # lm-eval logs every request of a document, each with its arguments
        requests = line.get("arguments")
        first = requests.get("gen_args_0") if isinstance(requests, dict) else None
        sent = first.get("arg_0") if isinstance(first, dict) else None
    if sent is None or isinstance(sent, str):
        return sent
    return json.dumps(sent, ensure_ascii=False, indent=1, default=str)


def _doubts(record: Record, runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yields why a judge's verdict is to be looked at twice; nothing where no judge graded."""
    if not isinstance(record.get("judge"), dict):
        return
    missing = sorted({str(run.get("outcome")) for run in runs} - {"scored", "unjudged"})
    if missing:
        yield f"no verdict: {', '.join(missing)}"
    if any(run.get("asked_again") for run in runs):
        yield "the judge was reminded of the format"
    ratings = [run["rating"] for run in runs if isinstance(run.get("rating"), int | float)]
    if len(set(ratings)) > 1:
        yield f"ratings from {min(ratings):g} to {max(ratings):g} over {len(runs)} responses"
