"""CulturalVQA: one set of questions about images, the prompts for them, and a judge, LAVE, beside exact match.

Where the answers are withheld there is no score: the predictions are collected in a file for submission.
"""

from __future__ import annotations

import json
import logging
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Len
from pydantic import BeforeValidator, Field

from culture_tasks.benchmarks.culturalvqa.exact_match import exact_match
from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.benchmarks.fields import listed
from culture_tasks.benchmarks.interface import (
    Benchmark,
    ComputedScore,
    DataSet,
    Decoding,
    Doc,
    Documents,
    Entry,
    JudgedScore,
    MeanScore,
    Picture,
    Prompt,
    Run,
    Scale,
    Score,
    Task,
    Variant,
)
from culture_tasks.benchmarks.own_culture import CultureBenchmark, LikeBenchmark, Ratings
from culture_tasks.benchmarks.reporting import BenchmarkReport, Groups, names_in
from culture_tasks.benchmarks.tables import BenchmarkNumbers
from culture_tasks.benchmarks.tables import Table as ReportTable
from culture_tasks.data.checking import DataReport, count, tally
from culture_tasks.data.files import Rows
from culture_tasks.data.images import Images
from culture_tasks.data.rows import Identifier, OptionalIdentifier, OptionalLabel, TableRow, Text
from culture_tasks.data.tables import Release, Table
from culture_tasks.errors import DataError
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.plain_files import write_whole
from culture_tasks.prompt_files import load as prompt_file
from culture_tasks.settings import Settings
from culture_tasks.text import answer_in
from culture_tasks.vocabulary import places

_log = logging.getLogger(__name__)

QUESTIONS, ANSWERS = 2_378, 7_206  # in all (section 3 and conclusion)
COUNTRIES = names_in(__package__, "countries.txt")  # Appendix A
FACETS = ("clothing", "drinks", "food", "rituals", "traditions")  # abstract and section 5
GROUPS = {"country": Groups(COUNTRIES, places=places), "facet": Groups(FACETS)}

_SPELLINGS = {"us": "usa", "united states": "usa", "türkiye": "turkey"}


def country_of(text: str | None) -> str:
    """Returns the country that a text names; empty if it is none of the 11."""
    name = (text or "").strip().casefold().replace("_", " ")
    country = _SPELLINGS.get(name, name.replace(" ", "_"))
    return country if country in COUNTRIES else ""


def facet_of(text: str | None) -> str:
    """Returns the facet that a text names by its first letters, as ``Drink`` does; empty if it is none of the 5."""
    stem = (text or "").strip().casefold()[:4]
    return next((facet for facet in FACETS if facet[:4] == stem), "")


# Data


def _texts(value: Any) -> Any:
    """Makes a list of one text, and leaves out the blank entries that pad some columns."""
    if isinstance(value, str):
        value = listed(value) if value.lstrip().startswith("[") else [value]
    entries = [] if value is None else value
    if not isinstance(entries, list):
        return entries
    return [entry for entry in entries if entry is not None and (not isinstance(entry, str) or entry.strip())]


Texts = Annotated[list[Text], BeforeValidator(_texts)]


class CulturalVqaRow(TableRow):
    """One row as released; older revisions of the Hub's data hold image and question alone."""

    question: Text
    u_id: OptionalIdentifier = None
    image: OptionalLabel = None
    facet: OptionalLabel = None
    country: OptionalLabel = None
    all_answers: Texts = Field(default_factory=list)
    entities: Texts = Field(default_factory=list)


class _AnswerRow(TableRow):
    """One row of a local answers file, joined on ``u_id``."""

    u_id: Identifier
    all_answers: Annotated[Texts, Len(min_length=1)]
    facet: OptionalLabel = None
    country: OptionalLabel = None


QUESTION_TABLE = Table(
    model=CulturalVqaRow,
    folder="culturalvqa",
    stems=("test", "data/test-*"),
    hub="mair-lab/CulturalVQA",
    additions=("answers",),
    id="u_id",
    image_column="image",
    release=Release(QUESTIONS),
    counts=lambda rows: [
        count("questions", len(rows), QUESTIONS),
        count("answers", sum(len(row.all_answers) for row in rows), ANSWERS),
        *tally("country {}", (country_of(row.country) for row in rows), COUNTRIES),
        *tally("facet {}", (facet_of(row.facet) for row in rows), FACETS),
    ],
)
ANSWERS_TABLE = Table(model=_AnswerRow, folder="culturalvqa", stems=("answers",), id="u_id")


def _with_local_answers(found: Rows[CulturalVqaRow], settings: Settings) -> Rows[CulturalVqaRow]:
    if not (paths := ANSWERS_TABLE.files(settings)):
        return found
    answers, rows = {row.u_id: row for row in ANSWERS_TABLE.rows(settings).rows}, []
    for index, row in enumerate(found.rows):
        if (answer := answers.get(row.u_id or "")) is None:
            raise DataError(
                f"{paths[0]}: found no answer for {found.where(index)}, whose u_id is {row.u_id!r}. Expected a row for "
                "each question, and questions with a column 'u_id'. Add it."
            )
        rows.append(row.model_copy(update=answer.model_dump(exclude={"u_id"}, exclude_none=True)))
    return replace(found, rows=rows)


# Documents

WITH_IMAGE = ("vlm", "fewshot")

EXAMPLES = 3
"""Examples of the few-shot variant. The paper shows the layout of one and doesn't say how many there were."""


def load(shown: str, settings: Settings, table: Table[CulturalVqaRow] = QUESTION_TABLE, country: str = "") -> Documents:
    """Loads the questions, and their images where the model will be shown them.

    A document has what the model is ``shown`` and no more, since harnesses copy every field. The questions of an own
    culture are about one ``country``; else each row names its own.
    """
    found = table.rows(settings, images=set() if shown in WITH_IMAGE else None)
    if table is QUESTION_TABLE:
        found = _with_local_answers(found, settings)
    rows = found.rows
    without = [index for index, row in enumerate(rows) if not row.all_answers]
    if without and len(without) < len(rows):
        raise DataError(
            f"{found.where(without[0])}, field 'all_answers': found nothing, here and in {len(without) - 1} more rows "
            "while others have answers. Expected at least one answer in each row, or in none."
        )
    if column := {"country": "country", "lens": "entities", "fewshot": "all_answers"}.get(shown):
        advice = f"add the column {column!r} to your data, or leave this task out."
        found.require(f"culturalvqa_{shown} shows it to the model: {advice}", **{column: column})
    keys = Images(found, [row.image for row in rows]).keys()
    data, examples = found.fingerprint(exclude={"image"}), _examples(found, keys)
    more: Mapping[str, Callable[[CulturalVqaRow], dict[str, Any]]] = {
        "fewshot": lambda _: {"examples": next(examples)},
        "country": lambda row: {"country_name": row.country},
        "lens": lambda row: {"entities": ", ".join(row.entities)},
    }
    documents = [
        {
            "id": identifier,
            "question": row.question,
            "references": row.all_answers,
            "country": country or country_of(row.country),
            "facet": facet_of(row.facet),
            "image_id": key,  # the same for questions about one image
            "data": data,
            **(more[shown](row) if shown in more else {}),
        }
        for (identifier, row), key in zip(found, keys, strict=True)
    ]
    return Documents(documents, found.images, found.reading)


def _examples(found: Rows[CulturalVqaRow], keys: Sequence[str]) -> Iterator[list[dict[str, Any]]]:
    """Draws the examples of each question, by a fixed seed, from the questions about other images."""
    times = Counter(keys)
    for index, key in enumerate(keys):
        if len(keys) - times[key] < EXAMPLES:
            raise DataError(
                f"{found.where(index)}: culturalvqa_fewshot shows {EXAMPLES} questions about other images, and there "
                f"are {len(keys) - times[key]}. Add questions, or leave this task out."
            )
        rng = random.Random(f"1234-{index}")  # noqa: S311
        examples: list[int] = []
        while len(examples) < EXAMPLES:
            candidate = rng.randrange(len(keys))
            if keys[candidate] != key and candidate not in examples:
                examples.append(candidate)
        rows = [(candidate, found.rows[candidate]) for candidate in examples]
        yield [{"row": at, "question": row.question, "answer": row.all_answers[0]} for at, row in rows]


# Prompts


def render(prompt: str, doc: Doc) -> Prompt:
    """Returns the prompt for a question, the image before the text (section 5, Appendices H and I)."""
    file = prompt_file(__package__, prompt)
    if "examples" in doc:
        examples: list[str | Picture] = []
        for example in doc["examples"]:
            examples += [Picture(example["row"]), f"{example['question']}\n{example['answer']}"]
        return Prompt((file.text, *examples, Picture(), doc["question"]))
    text = file.fill({**doc, "country": doc.get("country_name", "")})
    return Prompt((Picture(), text) if prompt == "vlm.v1" else (text,))


# Scores


def write_submission(predictions: Sequence[Mapping[str, str]], task: str, run: Run) -> None:
    """Writes predictions, mappings with ``id`` and ``pred``, into a file named after task, model and time.

    ``CULTURE_TASKS_SUBMISSIONS`` names the folder. Where it isn't set, that is ``submissions`` below the folder that
    the harness writes to, as far as the harness says, else below the current one.
    """
    if not predictions:
        return
    folder = run.settings.submissions or (run.output or Path()) / "submissions"
    model = re.sub(r"[^\w.-]+", "_", run.model).strip("._")[-100:]
    path = folder.expanduser() / f"{task}_{model}_{datetime.now(UTC):%Y%m%dT%H%M%S%f}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(list(predictions), ensure_ascii=False, indent=1) + "\n")
    except OSError as error:  # the results of the run's other tasks are still to be written
        _log.error(
            "%s: can't write the predictions for submission to %s (%s). They are in the samples that "
            "--log_samples writes. Name another folder by CULTURE_TASKS_SUBMISSIONS.",
            *(task, path, error.strerror),
        )
        return
    _log.warning(
        "%s: the data have no answers, so there is no score. %d predictions for submission are in %s.",
        *(task, len(predictions), path),
    )


SHARE = Scale("share", 0.0, 1.0, digits=3)
EXACT_MATCH = MeanScore(name="exact_match", title="exact match", scale=SHARE)
SUBMISSION = ComputedScore(
    name="predictions_for_submission",
    title="predictions for submission",
    scale=Scale("count", 0.0, better=None),
    value=len,
    is_score=False,
    finish=lambda *run: write_submission(*run),
)


def score(doc: Doc, responses: Sequence[str]) -> Score:
    """Has the answers to a question graded; without reference answers, gives the prediction for a submission."""
    if not doc["references"]:
        prediction = {"id": doc["id"], "pred": answer_in(responses[0])}
        return Score(item=doc["id"], responses=responses, values={SUBMISSION.name: prediction})
    matches = [exact_match(answer_in(response), doc["references"]) for response in responses]
    return Score.of(
        doc,
        responses,
        GROUPS,
        question=doc["question"],
        references=doc["references"],
        cluster=doc["image_id"],
        image=doc["image_id"],
        rubric=LAVE,
        values={EXACT_MATCH.name: sum(matches) / len(matches)},
    )


# Tasks

_DECODING = Decoding(max_tokens=64)  # the paper doesn't give any: greedy
VARIANTS = [
    Variant(f"_{shown}".removesuffix("_vlm"), title, f"{shown}.v1", _DECODING, about=about, shown=shown)
    for shown, title, about in (
        ("vlm", "", "image and question (App. H)"),
        ("fewshot", "with examples", "with examples before the question (App. I)"),
        ("blind", "question alone", "question alone (section 5)"),
        ("country", "question and country", "question and country (section 5)"),
        ("lens", "question and entities", "question and coarse visual entities (section 5)"),
    )
]


class _AskedAsInCulturalVqa(Benchmark):
    """What CulturalVQA and cultures like it share."""

    groups, culture_field = GROUPS, "country"

    def report(self) -> BenchmarkReport:
        """Returns the scores by country and facet; exact match is in the results alone, since the paper uses LAVE."""
        return replace(super().report(), further=())

    def _tasks(self, table: Table[CulturalVqaRow], language: str = "en", country: str = "") -> list[Task]:
        """Returns the tasks that ask the questions of a table, which may be about one country."""
        rating = JudgedScore(name=LAVE.name, title="LAVE", scale=SHARE, groups=self.groups)
        return [
            variant.task(
                self.name,
                self.title,
                languages=(language,),
                metrics=lambda: (rating, EXACT_MATCH, SUBMISSION),
                data=DataSet((table,), partial(load, variant.facts["shown"], table=table, country=country)),
                prompt=partial(render, variant.prompt),
                score=score,
                shows_images=variant.facts["shown"] in WITH_IMAGE,
                target=lambda doc: doc["references"],
            )
            for variant in VARIANTS
        ]


class CulturalVqaCulture(_AskedAsInCulturalVqa, CultureBenchmark):
    """The questions about images of a culture of the user's; people rate models' answers, 1 is best (Appendix K)."""

    ratings = Ratings(level="ordinal", scale=(1, 5), measures={"Spearman's rho": "spearman"})

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns the tasks."""
        table = QUESTION_TABLE.of_culture(self.folder, counts=lambda rows: [count("questions", len(rows))])
        return self._tasks(table, self.file.language, self.file.name)


class CulturalVqa(_AskedAsInCulturalVqa, LikeBenchmark):
    """CulturalVQA (Nayak et al., 2024)."""

    name, title, paper = "culturalvqa", "CulturalVQA", "Nayak et al., 2024"
    judge, data = "LAVE, GPT-4o", "Hub mair-lab/CulturalVQA"
    made_from = ("CANDLE",)
    culture = CulturalVqaCulture

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns the tasks."""
        return self._tasks(QUESTION_TABLE)

    def rubrics(self) -> Sequence[Rubric]:
        """Returns LAVE's rubric as the paper changed it."""
        return (LAVE,)

    def tables(self, numbers: BenchmarkNumbers) -> Iterator[ReportTable]:
        """Yields its tables by country and facet."""
        for table in super().tables(numbers):
            yield replace(table, notes=("LAVE: the share of answers that the judge calls correct.",))

    def check(self, settings: Settings) -> DataReport:
        """Checks questions, answers and images; answers may be withheld in all rows."""
        report = super().check(settings)
        if ANSWERS_TABLE.files(settings):
            report.problems += ANSWERS_TABLE.check(settings, set())[1]
        if report.usable:
            try:
                load("blind", settings)  # joins local answers
            except DataError as error:
                report.problems.append(str(error))
        return report


BENCHMARK = CulturalVqa()
