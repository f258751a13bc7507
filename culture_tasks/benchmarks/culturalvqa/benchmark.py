"""CulturalVQA as a benchmark: one set of questions, the prompts for them, and how answers are scored.

The LAVE judge grades, beside exact match. Its normalisation is the one of the VQA evaluation (Antol et
al., 2015; Goyal et al., 2017): lower case, number words to digits, articles and punctuation removed. Where that one
gives a contraction its missing apostrophe by a list, here every apostrophe is removed, which makes the same pairs
equal. Where the answers are withheld there is no score: the predictions are collected in a file for submission.
"""

from __future__ import annotations

import json
import logging
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from culture_tasks.benchmarks.culturalvqa.documents import (
    COUNTRIES,
    FACETS,
    QUESTION_TABLE,
    WITH_IMAGE,
    CulturalVqaDoc,
    CulturalVqaRow,
    Variant,
    counts_of,
    culture_table,
    load,
)
from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.benchmarks.interface import (
    Answered,
    Benchmark,
    ComputedScore,
    DataSet,
    Decoding,
    Entry,
    JudgedScore,
    MeanScore,
    Metric,
    Picture,
    Prompt,
    Run,
    Scale,
    Task,
)
from culture_tasks.benchmarks.own_culture import CultureBenchmark, CultureFile, LikeBenchmark, Ratings, by_statistic
from culture_tasks.benchmarks.reporting import BenchmarkReport
from culture_tasks.data.checking import DataReport
from culture_tasks.data.tables import Table
from culture_tasks.errors import DataError
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.plain_files import write_whole
from culture_tasks.prompt_files import load as prompt_file
from culture_tasks.settings import Settings
from culture_tasks.text import answer_in, folded

_log = logging.getLogger(__name__)

SHARE = Scale("share", 0.0, 1.0, digits=3)
SUBMISSION = "predictions_for_submission"


class Presentation(NamedTuple):
    """How the questions are put to a model.

    Attributes:
        suffix: The end of its tasks' names, after the benchmark's name.
        title: The end of its title.
        about: The quantity that it measures.
    """

    suffix: str
    title: str
    variant: Variant
    about: str


WAYS = (
    Presentation("", "", "vlm", "image and question (App. H)"),
    Presentation("_fewshot", "with examples", "fewshot", "with examples before the question (App. I)"),
    Presentation("_blind", "question alone", "blind", "question alone (section 5)"),
    Presentation("_country", "question and country", "country", "question and country (section 5)"),
    Presentation("_lens", "question and entities", "lens", "question and coarse visual entities (section 5)"),
)
DECODING = Decoding(max_tokens=64)


class CulturalVqaCulture(CultureBenchmark):
    """The questions about images of a culture of the user's."""

    ratings = Ratings(  # of models' answers, where 1 is the best (Appendix K)
        level="ordinal",
        scale=(1, 5),
        measures={"Spearman's rho": by_statistic("spearman")},
    )

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns the tasks."""
        table = culture_table(self.folder)
        return tuple(task_of(way, self, table, self.file) for way in WAYS)

    def report(self) -> BenchmarkReport:
        """Returns the numbers, tables and figures of CulturalVQA, with the culture as its one country."""
        from culture_tasks.benchmarks.culturalvqa.report import report_of

        file = self.file
        report = report_of(self.name, self.title, {file.name: file.title}, {file.name: file.place})
        return replace(report, as_published=())


class CulturalVqa(LikeBenchmark):
    """CulturalVQA (Nayak et al., 2024)."""

    name = "culturalvqa"
    title = "CulturalVQA"
    paper = "Nayak et al., 2024"
    judge = "LAVE, GPT-4o"
    data = "Hub mair-lab/CulturalVQA"
    made_from = ("CANDLE",)
    culture = CulturalVqaCulture

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns the tasks."""
        return tuple(task_of(way, self) for way in WAYS)

    def rubrics(self) -> Sequence[Rubric]:
        """Returns LAVE's rubric as the paper changed it."""
        return (LAVE,)

    def report(self) -> BenchmarkReport:
        """Returns the numbers, tables and figures of the paper."""
        from culture_tasks.benchmarks.culturalvqa.report import REPORT

        return REPORT

    def check(self, settings: Settings) -> DataReport:
        """Checks questions, answers and images.

        Answers that are withheld in all rows are no problem: the tasks then write predictions for submission.
        """
        report = super().check(settings)
        if report.usable:
            try:
                report.counts = list(counts_of(load("blind", settings).rows))
            except DataError as error:
                report.problems.append(str(error))
        return report


def task_of(
    way: Presentation,
    benchmark: Benchmark,
    table: Table[CulturalVqaRow] = QUESTION_TABLE,
    file: CultureFile | None = None,
) -> Task:
    """Returns a benchmark's task that asks questions in one way: the released ones, or those of an own culture."""
    country = file.name if file else ""
    return Task(
        name=f"{benchmark.name}{way.suffix}",
        about=way.about,
        title=", ".join(filter(None, (benchmark.title, way.title))),
        languages=(file.language if file else "en",),
        metric=LAVE.name,
        metrics=partial(metrics, (country,) if file else COUNTRIES),
        data=DataSet((table,), lambda settings: load(way.variant, settings, table, country)),
        prompt=partial(render, way.variant),
        score=score,
        decoding=DECODING,
        shows_images=way.variant in WITH_IMAGE,
        target=lambda doc: doc["references"],
        note="The paper doesn't give decoding settings: greedy.",
    )


def render(variant: Variant, doc: CulturalVqaDoc) -> Prompt:
    """Returns the prompt for a question, the image before the text (section 5, Appendices H and I)."""
    file = prompt_file(__package__, f"{variant}.v1")
    if variant == "fewshot":
        examples: list[str | Picture] = []
        for example in doc["examples"]:
            examples += [Picture(example["row"]), f"{example['question']}\n{example['answer']}"]
        return Prompt((file.text, *examples, Picture(), doc["question"]))
    values = {"question": doc["question"]}
    if variant == "country":
        values["country"] = doc["country_name"]
    elif variant == "lens":
        values["entities"] = doc["entities"]
    text = file.fill(values)
    return Prompt((Picture(), text) if variant == "vlm" else (text,))


def metrics(countries: Sequence[str]) -> list[Metric]:
    """Returns the metrics of a task that asks about some countries.

    The judge's score, from 0 to 1, is ``lave`` (Appendix F): the share of answers that the judge calls correct,
    accuracy in the paper's sense.
    """
    return [
        JudgedScore(name=LAVE.name, title="LAVE", scale=SHARE, groups={"country": countries, "facet": FACETS}),
        MeanScore(name="exact_match", title="exact match", scale=SHARE),
        ComputedScore(
            name=SUBMISSION,
            title="predictions for submission",
            scale=Scale("count", 0.0, better=None),
            value=len,
            is_score=False,
            finish=write_submission,
        ),
    ]


def score(doc: CulturalVqaDoc, responses: Sequence[str]) -> Answered:
    """Has the answers to a question graded; without reference answers, gives the prediction for a submission."""
    if not doc["references"]:
        prediction = {"id": doc["id"], "pred": answer_in(responses[0])}
        return Answered(item=doc["id"], responses=responses, values={SUBMISSION: prediction})
    matches = [exact_match(answer_in(response), doc["references"]) for response in responses]
    return Answered(
        item=doc["id"],
        responses=responses,
        question=doc["question"],
        references=doc["references"],
        groups={"country": doc["country"], "facet": doc["facet"]},
        cluster=doc["image_id"],
        image=doc["image_id"],
        data={"data": doc["data"]},
        rubric=LAVE,
        values={"exact_match": sum(matches) / len(matches)},
    )


def write_submission(predictions: Sequence[Mapping[str, str]], task: str, run: Run) -> None:
    """Writes predictions, mappings with ``id`` and ``pred``, into a file named after task, model and time.

    ``CULTURE_TASKS_SUBMISSIONS`` names the folder. Where it isn't set, that is ``submissions`` below the folder that
    the harness writes to, as far as the harness says, else below the current one.
    """
    if not predictions:
        return
    default = (run.output or Path()) / "submissions"
    folder = default if run.settings.submissions is None else run.settings.submissions.expanduser()
    model = re.sub(r"[^\w.-]+", "_", run.model).strip("._")[-100:]
    path = folder / f"{task}_{model}_{datetime.now(UTC):%Y%m%dT%H%M%S%f}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
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


_ARTICLES = frozenset(("a", "an", "the"))
_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_NUMBERS = {**{word: str(number) for number, word in enumerate(_WORDS)}, "none": "0"}
_LISTED = frozenset(';/[]"{}()=+\\_-><@`?!')
# A comma between the digits of a number, and a period that no digit follows.
_THOUSANDS = re.compile(r"(?<=\d),(?=\d)")
_STRAY_PERIOD = re.compile(r"\.(?!\d)")


def normalised(answer: str) -> str:
    """Returns an answer in the form in which two answers are compared."""
    text = folded(answer).translate(_MARKS)
    if "," in text:
        text = _THOUSANDS.sub("", text).replace(",", " ")
    if "." in text:
        text = _STRAY_PERIOD.sub("", text)
    words = text.split()
    return " ".join(_NUMBERS.get(word, word) for word in words if word not in _ARTICLES)


class _Marks(dict[int, int | str | None]):
    """A translation table, filled as characters come: punctuation to spaces, apostrophes to nothing.

    Punctuation is as the VQA evaluation lists it (neither ``%`` nor ``$``), and outside of ASCII as Unicode does.
    """

    def __missing__(self, code: int) -> int | str | None:
        mark = chr(code)
        is_punctuation = mark in _LISTED if code < 128 else unicodedata.category(mark).startswith("P")
        self[code] = None if mark in "'’" else " " if is_punctuation else code
        return self[code]


_MARKS = _Marks()


def exact_match(prediction: str, references: Iterable[str]) -> float:
    """Returns 1.0 if the prediction equals any reference after :func:`normalised` and isn't empty, else 0.0."""
    ours = normalised(prediction)
    return float(bool(ours) and any(ours == normalised(reference) for reference in references))


BENCHMARK = CulturalVqa()
