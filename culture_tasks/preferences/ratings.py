"""Questions with their rated responses: from tables of rated rows, and from results that a judge has graded.

All ratings of a build are by one rater, by one prompt and setting, on one scale. The responses of a question were
graded by one rubric.
"""

from __future__ import annotations

import fnmatch
import hashlib
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from culture_tasks.benchmarks.human_ratings import CultureKind
from culture_tasks.benchmarks.interface import Task
from culture_tasks.benchmarks.registry import benchmarks, entries, rubric_named
from culture_tasks.data.files import SUFFIXES
from culture_tasks.data.reading import DataReading
from culture_tasks.errors import DataError, nearest
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.people.rated_responses import (
    NO_CATEGORY,
    PEOPLE,
    UNKNOWN,
    RatedResponse,
    ResponseRow,
    kind_of_culture,
    language_of,
    offered,
    rated_responses,
    rating_column,
    table_of,
)
from culture_tasks.rejudge.rejudging import find_runs
from culture_tasks.results.finding import UnusedFile, parse_name
from culture_tasks.results.logged_samples import JudgedSample, is_judged, judged_sample
from culture_tasks.results.run_files import RunFiles
from culture_tasks.results.task_results import task_results
from culture_tasks.results.trained_on import question_fingerprint
from culture_tasks.settings import Settings
from culture_tasks.text import answer_in, failure_in


class RatedAnswer(NamedTuple):
    """A rated response, and its writer: a model, ``people``, or the name in the data (may be empty)."""

    text: str
    rating: float
    writer: str


@dataclass(slots=True)
class RatedQuestion:
    """A question with its rated responses, no two with the same text; facts but the language may be missing."""

    text: str
    fingerprint: str  # the same however the question is written
    references: tuple[str, ...] = ()
    language: str = UNKNOWN
    category: str = ""
    culture: CultureKind | None = None
    answers: list[RatedAnswer] = field(default_factory=list)


@dataclass
class Ratings:
    """The rated responses of all sources."""

    sources: list[dict[str, Any]] = field(default_factory=list)  # what was read, as the manifest says it
    left_out: Counter[str] = field(default_factory=Counter)  # numbers of responses, by reason
    test_items: dict[str, set[tuple[str, str]]] = field(default_factory=dict)  # tasks and items, by fingerprint
    reading: DataReading = field(default_factory=DataReading)
    judges: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # identities by rubric, where a judge rated
    shared: dict[str, tuple[Any, str]] = field(default_factory=dict)  # what all have in common, and where it is from
    groups: dict[tuple[str, str], RatedQuestion] = field(default_factory=dict)  # responses by question and rubric

    @property
    def rated_by(self) -> dict[str, Any]:
        """Who rated, and on which scale (None where it isn't known), as the manifest says it."""
        rater, scale = self.shared["rater"][0], self.shared.get("scale", (None, ""))[0]
        kind = "judge" if self.judges else "people"
        judges = [self.judges[rubric] for rubric in sorted(self.judges)]
        return {"kind": kind, "name": rater, "judges": judges, "scale": scale}

    def share(self, what: str, value: object, where: str) -> None:
        """Notes a fact of some ratings, and refuses another value than that of earlier ones."""
        first, first_where = self.shared.setdefault(what, (value, where))
        if first != value:
            raise DataError(
                f"preferences: {where} has the {what} {value}, and {first_where} has {first}. Ratings that differ in "
                "it can't be compared in a pair. Build a folder from each, or choose one judge with --judge, or tasks "
                "with --tasks."
            )

    def add(self, origin: str, responses: Iterable[RatedResponse | str], source: Mapping[str, Any]) -> int:
        """Takes the responses of a source in, but for unrated and blank ones, and returns how many are rated."""
        digest, rated = hashlib.sha256(), 0
        for response in responses:
            if isinstance(response, str):
                raise DataError(f"preferences: {response}")
            item, rating = response.item, response.human
            if rating is None or failure_in(item.response):
                self.left_out["unrated_responses"] += 1
                continue
            read = "\x1f".join((item.question, *item.references, item.response, f"{rating!r}\x1e"))
            digest.update(read.encode("utf-8", "replace"))
            rated += 1
            if response.rubric:
                grader = rubric_named(response.rubric)
                scale = (float(grader.lowest), float(grader.highest))
                self.share("scale", scale, f"{origin}, row {response.row}")
            if not item.response.strip():
                self.left_out["blank_responses"] += 1
                continue
            name = question_fingerprint(item.question)
            group = self.groups.setdefault((name, response.rubric), RatedQuestion(item.question, name))
            # A later row may add facts of the question that an earlier one lacks.
            group.references = group.references or item.references
            group.category = group.category or ("" if response.category == NO_CATEGORY else response.category)
            group.culture = group.culture or response.culture
            group.language = response.language if group.language == UNKNOWN else group.language
            group.answers.append(RatedAnswer(item.response, rating, response.writer))
        if rated:
            self.sources.append({**source, "fingerprint": digest.hexdigest()[:16], "responses": rated})
        return rated

    @cached_property
    def questions(self) -> list[RatedQuestion]:
        """The questions, in the order of the sources, each with the responses that one rubric graded.

        Of a question that several rubrics graded, those of the rubric with most responses count, or of equal ones, the
        first by name. Equal texts count once, with the mean of their ratings.
        """
        by_question: dict[str, list[str]] = {}
        for name, rubric in self.groups:
            by_question.setdefault(name, []).append(rubric)
        questions = []
        for name, rubrics in by_question.items():
            numbers = {rubric: len(self.groups[name, rubric].answers) for rubric in sorted(rubrics)}
            question = self.groups[name, max(numbers, key=numbers.__getitem__)]
            repeats: dict[str, list[RatedAnswer]] = {}
            for answer in question.answers:
                repeats.setdefault(answer.text.strip(), []).append(answer)
            self.left_out["graded_by_another_rubric"] += sum(numbers.values()) - len(question.answers)
            self.left_out["repeated_texts"] += len(question.answers) - len(repeats)
            # The exact mean, rounded once: a rounding error would make a pair of a tie, and depend on the order.
            question.answers = [
                same[0]._replace(rating=float(statistics.mean(Fraction(answer.rating) for answer in same)))
                for same in repeats.values()
            ]
            questions.append(question)
        return questions


@dataclass(frozen=True, slots=True)
class ResultSelection:
    """What to use of results; ``passed_over`` counts what isn't."""

    tasks: Sequence[str] = ()  # names or patterns; without any, all tasks that a judge graded
    judge: str | None = None  # ``backend:model`` or a backend; without one, the only judge that isn't text overlap
    test_questions: bool = False  # whether questions of tests may be used
    passed_over: Counter[str] = field(default_factory=Counter)

    def samples(self, run: RunFiles, task: str) -> Iterator[JudgedSample]:
        """Yields the samples of a task whose judge counts; refuses those that may not be trained on."""
        for sample in run.samples(task):
            if not is_judged(sample):
                self.passed_over[f"samples of {task}, which no judge grades"] += 1
                continue
            judged = judged_sample(sample)
            name, backend = judged.judge.name, judged.judge.name.partition(":")[0]
            if self.judge in (name, backend) if self.judge else backend not in ("none", "lexical"):
                self._check_usable(judged, task)
                yield judged
            else:
                self.passed_over[f"samples graded by {name}"] += 1

    def _check_usable(self, judged: JudgedSample, task: str) -> None:
        """Refuses what may not be trained on, what shows images, and tests unless the user knows."""
        entry, benchmark = entries().get(task), benchmarks().get(judged.record.benchmark)
        if benchmark is not None and benchmark.not_for_training:
            about = f"{benchmark.title} ({benchmark.paper})"
            problem = f"is of {about}, which may not be trained on: {benchmark.not_for_training}."
        elif judged.record.image or (isinstance(entry, Task) and entry.shows_images):
            problem = "shows images, and only text can be trained on here. Choose others with --tasks."
        elif not self.test_questions:
            problem = (
                "is a test, by which a model that is trained on its questions can't be tested any more. To train on "
                "them all the same, add --train-on-test: the manifest names the items, and the report marks the model."
            )
        else:
            return
        raise DataError(f"preferences: {judged.logged.where}: {task} {problem}")


def read_ratings(sources: Sequence[str], selection: ResultSelection, settings: Settings) -> Ratings:
    """Reads tables of rows that people rated, and files and folders of results."""
    ratings = Ratings()
    results: list[Path] = []
    offers = [name for key, offer in offered().items() for name in (key, offer.source.hub) if name]
    for source in dict.fromkeys(sources):
        path = Path(source).expanduser()
        if source not in offers and not path.exists():
            raise DataError(
                f"preferences: {source}: no such file or folder.{nearest(source, offers)} Expected a file of rated "
                f"rows ({', '.join(SUFFIXES)}), a folder of results, or {' or '.join(offers)}."
            )
        if source not in offers and (path.is_dir() or parse_name(path) is not None):
            results.append(path)
        else:
            _read_rows(ratings, source, settings)
    if results:
        _read_results(ratings, results, selection)
    return ratings


def _read_rows(ratings: Ratings, source: str, settings: Settings) -> None:
    table, _ = table_of(source, settings)
    ratings.share("rater", PEOPLE, table.origin)
    ratings.reading |= table.reading
    name = Path(table.origin).name if table.local else table.origin
    responses = rated_responses(table, ResponseRow, settings)
    if not ratings.add(table.origin, responses, {"kind": "rows", "name": name, "model": "", "task": ""}):
        columns = sorted({name for row in table.rows for name in row})
        raise DataError(
            f"preferences: {table.origin}: no row has a rating in the column {rating_column(table)!r}. Found the "
            f"columns {', '.join(columns)}."
        )


def _read_results(ratings: Ratings, paths: Sequence[Path], selection: ResultSelection) -> None:
    used = 0
    for run in find_runs(paths):
        results = task_results(run.files)
        if isinstance(results, UnusedFile):
            raise DataError(f"preferences: {results.path}: {results.detail}. Leave the file out.")
        name = run.files.result_file.name
        models = {
            result.task: f"{result.model} + {Path(result.adapter).name}" if result.adapter else result.model
            for result in results
        }
        for task in run.files.logged_tasks():
            if not selection.tasks or any(fnmatch.fnmatchcase(task, pattern) for pattern in selection.tasks):
                facts = {"kind": "results", "name": name, "model": models.get(task, ""), "task": task}
                used += ratings.add(name, _verdicts(ratings, run.files, facts, selection), facts)
    if not used:
        found = ", ".join(f"{count} {what}" for what, count in sorted(selection.passed_over.items())) or "no samples"
        raise DataError(
            f"preferences: {', '.join(map(str, paths))}: no verdict that counts; found {found}. Expected samples, "
            "logged with --log_samples, and a judge's verdicts on them: `culture-tasks rejudge` grades, --judge names "
            "one of several judges, or lexical for text overlap, and --tasks the tasks."
        )


def _verdicts(
    ratings: Ratings, run: RunFiles, facts: Mapping[str, str], selection: ResultSelection
) -> Iterator[RatedResponse]:
    """Yields the responses of a task with a scored verdict, without their reasoning, which no judge sees."""
    entry = entries().get(facts["task"])
    one_language = entry.languages[0] if isinstance(entry, Task) and len(entry.languages) == 1 else None
    for judged in selection.samples(run, facts["task"]):
        record, judge, where = judged.record, judged.judge, judged.logged.where
        unscored = [verdict.outcome for verdict in record.runs if verdict.outcome != "scored"]
        ratings.left_out["unscored_verdicts"] += len(unscored)
        selection.passed_over.update(f"{outcome} verdicts" for outcome in unscored)
        if judged.scored:
            ratings.share("rater", judge.name, where)
            for name, value in judge.model_dump().items():
                ratings.share(f"{name.replace('_', ' ')} of {judge.name} with {judge.rubric}", value, where)
            ratings.judges[judge.rubric] = judge.model_dump()
        language = record.groups.get("prompt_language") or record.groups.get("language")
        for verdict in judged.scored.values():
            text = answer_in(verdict.response)
            if text.strip():
                item = (facts["task"], record.item)
                ratings.test_items.setdefault(question_fingerprint(record.question), set()).add(item)
            yield RatedResponse(
                row=judged.logged.number,
                item=JudgeItem(record.question, record.references, text),
                human=verdict.rating,
                rubric=judge.rubric,
                category=record.groups.get("category") or "",
                language=one_language or language_of(record.question, language=language),
                culture=kind_of_culture(record.groups.get("culture")),
                writer=facts["model"],
            )
