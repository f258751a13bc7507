"""Where rated responses come from: tables of rated rows, and results of models that a judge has graded.

Rows are a benchmark's, from the Hub, or the user's own. Of results, the verdicts of one judge count.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from culture_tasks.benchmarks.interface import Task
from culture_tasks.benchmarks.registry import benchmark_of, benchmarks, entries, tasks_below
from culture_tasks.data.files import SUFFIXES, RowTable, read_file
from culture_tasks.data.rows import validated
from culture_tasks.errors import DataError, nearest
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.people.rated_responses import (
    NO_CATEGORY,
    ResponseRow,
    aliases,
    category_of,
    check_rating,
    language_of,
    offered,
    rubric_of,
)
from culture_tasks.preferences.rated_questions import (
    PEOPLE,
    RatedAnswer,
    RatedQuestion,
    RatedQuestions,
    RatingCollector,
    RatingScale,
    kind_of_culture,
)
from culture_tasks.rejudge.rejudging import find_runs
from culture_tasks.results.finding import UnusedFile, parse_name
from culture_tasks.results.logged_samples import JudgedSample, is_judged, judged_sample
from culture_tasks.results.run_files import RunFiles
from culture_tasks.results.samples import LoggedJudge, LoggedSample
from culture_tasks.results.task_results import task_results
from culture_tasks.results.training_manifest import RatingOrigin, TrainingSource, question_fingerprint
from culture_tasks.settings import Settings
from culture_tasks.text import answer_in, failure_in

RATING_COLUMNS = ("human_rating", "rating")
"""Columns of people's ratings, as CARE's newer and older revisions call them; the first that is there counts."""

_AT_ONCE = 1_000
"""Rows that are checked together, so that a long file is never in memory as models of its rows."""


class ResultSelection(NamedTuple):
    """What to use of result folders: tasks and groups (without any, all that are graded), and one judge's verdicts.

    The judge is ``backend:model``, or None where there is one alone. Text overlap or verdicts serve as ratings.
    ``test_questions`` says whether questions of tests may be used.
    """

    tasks: tuple[str, ...] = ()
    judge: str | None = None
    text_overlap: bool = False
    test_questions: bool = False


def gather(
    sources: Sequence[str], selection: ResultSelection, rating: str | None, settings: Settings
) -> RatedQuestions:
    """Reads sources: tables of rated rows, and result files and folders, which are read together.

    ``rating`` is the column of the ratings in rows; None means people's.
    """
    collector = RatingCollector()
    distinct = list(dict.fromkeys(sources))
    results = [source for source in distinct if _holds_results(source)]
    for source in distinct:
        if source not in results:
            _gather_rows(source, rating, settings, collector)
    if results:
        _gather_results([Path(source).expanduser() for source in results], selection, collector)
    return collector.questions()


def _holds_results(source: str) -> bool:
    names = [name for key, ratings in offered().items() for name in (key, ratings.source.hub) if name]
    path = Path(source).expanduser()
    if source in names:
        return False
    if path.exists() or path.suffix.lower() in SUFFIXES:
        return path.is_dir() or parse_name(path) is not None
    raise DataError(
        f"preferences: {source}: no such file or folder.{nearest(source, names)} Expected a file of rated rows "
        f"({', '.join(SUFFIXES)}), a folder of results, or {' or '.join(names)}."
    )


def _gather_rows(source: str, rating: str | None, settings: Settings, collector: RatingCollector) -> None:
    """Reads the rows of a table: a benchmark's (by its name or its data set's), or a file's."""
    offer = next((ratings.source for name, ratings in offered().items() if source in (name, ratings.source.hub)), None)
    if offer is None:
        table = read_file(Path(source).expanduser())
    else:
        (table,) = offer.read(settings)
        collector.reading |= table.reading
    columns = {name for row in table.rows for name in row}
    column = rating or next((name for name in RATING_COLUMNS if name in columns), RATING_COLUMNS[0])
    if column not in columns:
        raise DataError(
            f"preferences: {table.origin}: no column {column!r} with ratings.{nearest(column, columns)} "
            f"Found the columns {', '.join(sorted(columns))}. Name the column with --rating."
        )
    try:
        fingerprint, responses = _rated_rows(table, column, settings, collector)
    except DataError as error:
        raise DataError(f"preferences: {str(error).removeprefix('preferences: ')}") from None
    if not responses:
        raise DataError(
            f"preferences: {table.origin}: no row has a rating in the column {column!r}. "
            "Name another column with --rating."
        )
    collector.left_out["unrated_responses"] += len(table.rows) - responses
    rated_by = (
        RatingOrigin(kind="people", name=PEOPLE)
        if column in RATING_COLUMNS
        else RatingOrigin(kind="column", name=column)
    )
    collector.note_rater(rated_by, table.origin)
    name = Path(table.origin).name if table.local else table.origin
    collector.sources.append(TrainingSource(kind="rows", name=name, fingerprint=fingerprint, responses=responses))


def _rated_rows(table: RowTable, column: str, settings: Settings, collector: RatingCollector) -> tuple[str, int]:
    """Returns the fingerprint of the rated responses, and their number."""
    digest = hashlib.sha256()
    responses = 0
    graded: dict[tuple[str | None, str | None], tuple[str, Rubric | None]] = {}
    without_scale: list[tuple[float, int]] = []
    for index, row in _rows(table, column, settings):
        rating = row.human_rating
        if rating is None or failure_in(row.response):
            continue
        read = "\x1f".join((row.question, *row.references, row.response, f"{rating!r}\x1e"))
        digest.update(read.encode("utf-8", "replace"))
        responses += 1
        where, key = table.where(index), (row.category, row.rubric)
        if key not in graded:
            category = category_of(f"{where}, field 'category'", row.category)
            rubric = rubric_of(where, row.rubric, category) if column in RATING_COLUMNS else None
            graded[key] = ("" if category == NO_CATEGORY else category, rubric)
            if rubric is not None:
                collector.note_scale(RatingScale(rubric.lowest, rubric.highest, where))
        category, rubric = graded[key]
        if rubric is None:
            without_scale.append((rating, index))
        else:
            way_out = "Correct it; if the column isn't people's rating, name the one that is meant with --rating."
            check_rating(where, column, rating, rubric, way_out)
        writer = PEOPLE if row.response.strip() in row.references else row.model or row.source or ""
        question = RatedQuestion(
            row.question,
            question_fingerprint(row.question),
            references=row.references,
            language=language_of(row.question, language=row.language, culture=row.associated_culture),
            category=category,
            culture=kind_of_culture(row.associated_culture),
        )
        collector.add(question, "" if rubric is None else rubric.name, RatedAnswer(row.response, rating, writer))
    for rating, index in {min(without_scale), max(without_scale)} if without_scale else ():
        collector.without_scale.append((rating, table.where(index)))
    return digest.hexdigest()[:16], responses


def _rows(table: RowTable, column: str, settings: Settings) -> Iterator[tuple[int, ResponseRow]]:
    """Yields the rows by their index, with the ratings of a column."""
    names = aliases() | {column: "human_rating"}
    other_ratings = frozenset(RATING_COLUMNS) - {column}
    for start in range(0, len(table.rows), _AT_ONCE):
        part = table.part(range(start, min(start + _AT_ONCE, len(table.rows))))
        rows = [{name: value for name, value in row.items() if name not in other_ratings} for row in part.rows]
        try:
            yield from enumerate(validated(replace(part, rows=rows), ResponseRow, names, settings), start)
        except DataError as error:
            text = str(error).replace("field 'human_rating':", f"field {column!r}:", 1)  # as the user's file calls it
            raise DataError(text) from None


def _gather_results(paths: Sequence[Path], selection: ResultSelection, collector: RatingCollector) -> None:
    patterns: set[str] = set()
    for name in selection.tasks:
        fitting = fnmatch.filter(entries(), name)
        for entry in fitting:
            _check_tablesowed(benchmark_of(entry).name, entry)
        patterns.update([task.name for entry in fitting for task in tasks_below(entry)] if fitting else [name])
    reader = _Reader(selection, collector)
    before = len(collector.sources)
    for run in find_runs(paths):
        results = task_results(run.files)
        if isinstance(results, UnusedFile):
            raise DataError(f"preferences: {results.path}: {results.detail}. Leave the file out.")
        models = {
            result.task: f"{result.model} + {Path(result.adapter).name}" if result.adapter else result.model
            for result in results
        }
        for task in run.files.logged_tasks():
            if not patterns or any(fnmatch.fnmatchcase(task, name) for name in patterns):
                reader.read(run.files, task, models.get(task, ""))
    if len(collector.sources) == before:
        raise DataError(f"preferences: {', '.join(map(str, paths))}: {reader.why_nothing()}")


def _check_tablesowed(benchmark: str, where: str) -> None:
    declared = benchmarks().get(benchmark)
    if declared is not None and declared.not_for_training:
        raise DataError(
            f"preferences: {where} is of {declared.title} ({declared.paper}), which may not be trained on: "
            f"{declared.not_for_training}."
        )


class _Reader:
    """Reads the sample files of all runs, and notes what it passes over."""

    def __init__(self, selection: ResultSelection, collector: RatingCollector) -> None:
        self._selection = selection
        self._collector = collector
        self._other_judges: set[str] = set()
        self._unscored: Counter[str] = Counter()
        self._unjudged: dict[str, str] = {}
        self._judges: list[LoggedJudge] = []

    def read(self, run: RunFiles, task: str, model: str) -> None:
        """Takes the verdicts of a task in; a task without any is passed over."""
        digest, count, entry = hashlib.sha256(), 0, entries().get(task)
        one_language = entry.languages[0] if isinstance(entry, Task) and len(entry.languages) == 1 else None
        for sample in run.samples(task):
            for judged, text, rating in self._scored_responses(sample, task):
                record = judged.record
                stated = record.groups.get("prompt_language") or record.groups.get("language")
                digest.update(json.dumps([record.item, record.question, text, rating]).encode())
                count += 1
                question = RatedQuestion(
                    record.question,
                    question_fingerprint(record.question),
                    references=record.references,
                    language=one_language or language_of(record.question, language=stated),
                    category=record.groups.get("category") or "",
                    culture=kind_of_culture(record.groups.get("culture")),
                )
                self._collector.add(question, judged.judge.rubric, RatedAnswer(text, rating, model))
                if text.strip():
                    self._collector.test_items[question.fingerprint].add((task, record.item))
        if count:
            name, fingerprint = run.result_file.name, digest.hexdigest()[:16]
            source = TrainingSource(
                kind="results", name=name, fingerprint=fingerprint, responses=count, model=model, task=task
            )
            self._collector.sources.append(source)

    def _scored_responses(self, sample: LoggedSample, task: str) -> Iterator[tuple[JudgedSample, str, float]]:
        """Yields the responses with a scored verdict that counts, without their reasoning, which no judge sees."""
        if not is_judged(sample):
            self._unjudged[task] = str(sample.logged.get("benchmark", ""))
            return
        judged = judged_sample(sample)
        judge, selection = judged.judge, self._selection
        if (judge.backend == "lexical") != selection.text_overlap or selection.judge not in (None, judge.name):
            self._other_judges.add(judge.name)
            return
        self._check_usable(judged, task)
        unscored = [run.outcome for run in judged.record.runs if run.outcome != "scored"]
        self._unscored.update(unscored)
        self._collector.left_out["unscored_verdicts"] += len(unscored)
        if judged.scored and judge not in self._judges:
            rubric, where = judged.rubric, sample.where
            self._judges.append(judge)
            self._collector.note_rater(RatingOrigin(kind="judge", name=judge.name, judges=(judge.model_dump(),)), where)
            self._collector.note_scale(RatingScale(rubric.lowest, rubric.highest, f"{where}, rubric {rubric.name}"))
        for run in judged.scored.values():
            if run.rating is not None:
                yield judged, answer_in(run.response), run.rating

    def _check_usable(self, judged: JudgedSample, task: str) -> None:
        where = f"{judged.logged.where}: {task}"
        _check_tablesowed(judged.record.benchmark, where)
        entry = entries().get(task)
        if judged.record.image or (isinstance(entry, Task) and entry.shows_images):
            raise DataError(
                f"preferences: {where} shows images, and the data and recipes written here are of text alone. Choose "
                "tasks of text with --tasks."
            )
        if not self._selection.test_questions:
            raise DataError(
                f"preferences: {where} is a test. A model that is trained on its questions can't be tested by them any "
                "more. To train on them all the same, add --train-on-test: the manifest then names the items, and the "
                "report marks the model."
            )

    def why_nothing(self) -> str:
        """Returns why there is no response, and what to do."""
        if self._unscored:
            outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self._unscored.items()))
            return f"no verdict is scored ({outcomes}). Grade the responses with `culture-tasks rejudge`."
        if self._other_judges == {"none:none"}:
            return "the responses are recorded and not graded. Grade them with `culture-tasks rejudge`."
        if self._other_judges:
            judges, judge = ", ".join(sorted(self._other_judges)), self._selection.judge
            if judge is not None:
                return f"no verdict of {judge}.{nearest(judge, self._other_judges)} There are: {judges}."
            if self._selection.text_overlap:
                return f"nothing was graded by text overlap. Leave out --text-overlap for the verdicts of {judges}."
            return (
                f"graded by text overlap alone ({judges}), which says little of quality. Grade the responses with "
                "`culture-tasks rejudge`, or use it all the same with --text-overlap."
            )
        for task, benchmark in self._unjudged.items():
            _check_tablesowed(benchmark, task)
        if self._unjudged:
            return f"no judge grades {', '.join(self._unjudged)}. Choose tasks with a judge's verdicts."
        if self._selection.tasks:
            return "no samples of the tasks. Run them with --log_samples, and look for misspelt names after --tasks."
        return "no samples. Run the tasks with --log_samples."
