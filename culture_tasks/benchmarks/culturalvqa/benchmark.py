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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path

from culture_tasks.benchmarks.culturalvqa.documents import (
    COUNTRIES,
    FACETS,
    QUESTION_TABLE,
    WITH_IMAGE,
    CulturalVqaDoc,
    CulturalVqaRow,
    counts_of,
    culture_table,
    load,
)
from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.benchmarks.interface import (
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
    Score,
    Task,
    Variant,
)
from culture_tasks.benchmarks.own_culture import CultureBenchmark, CultureFile, LikeBenchmark, Ratings, by_statistic
from culture_tasks.benchmarks.reporting import BenchmarkReport, Groups, ScoreUnit, TableSpec, groups_of
from culture_tasks.data.checking import DataReport
from culture_tasks.data.tables import Table
from culture_tasks.errors import DataError
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.plain_files import write_whole
from culture_tasks.prompt_files import load as prompt_file
from culture_tasks.settings import Settings
from culture_tasks.text import answer_in, folded
from culture_tasks.vocabulary import places

_log = logging.getLogger(__name__)

SHARE = Scale("share", 0.0, 1.0, digits=3)
SUBMISSION = "predictions_for_submission"
GROUPS = {"country": Groups(COUNTRIES, places=places), "facet": Groups(FACETS)}

_DECODING = Decoding(max_tokens=64)
VARIANTS = [
    Variant(suffix, title, f"{shown}.v1", _DECODING, about=about, shown=shown)
    for suffix, title, shown, about in (
        ("", "", "vlm", "image and question (App. H)"),
        ("_fewshot", "with examples", "fewshot", "with examples before the question (App. I)"),
        ("_blind", "question alone", "blind", "question alone (section 5)"),
        ("_country", "question and country", "country", "question and country (section 5)"),
        ("_lens", "question and entities", "lens", "question and coarse visual entities (section 5)"),
    )
]


class CulturalVqaCulture(CultureBenchmark):
    """The questions about images of a culture of the user's."""

    ratings = Ratings(  # of models' answers, where 1 is the best (Appendix K)
        level="ordinal",
        scale=(1, 5),
        measures={"Spearman's rho": by_statistic("spearman")},
    )

    def __init__(self, folder: Path, file: CultureFile, like: Benchmark) -> None:
        super().__init__(folder, file, like)
        country = Groups({file.name: file.title}, places={file.name: file.place})
        self.groups, self.culture_field, self.ability = {**GROUPS, "country": country}, "country", "perception"

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns the tasks."""
        table = culture_table(self.folder)
        return tuple(task_of(variant, self, table, self.file) for variant in VARIANTS)

    def report(self) -> BenchmarkReport:
        """Returns the report of CulturalVQA without published numbers."""
        return replace(super().report(), as_published=(), further=())


class CulturalVqa(LikeBenchmark):
    """CulturalVQA (Nayak et al., 2024)."""

    name = "culturalvqa"
    title = "CulturalVQA"
    paper = "Nayak et al., 2024"
    judge = "LAVE, GPT-4o"
    data = "Hub mair-lab/CulturalVQA"
    made_from = ("CANDLE",)
    culture = CulturalVqaCulture
    groups = GROUPS
    culture_field = "country"
    ability = "perception"

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns the tasks."""
        return tuple(task_of(variant, self) for variant in VARIANTS)

    def rubrics(self) -> Sequence[Rubric]:
        """Returns LAVE's rubric as the paper changed it."""
        return (LAVE,)

    @cache  # noqa: B019 - one object a process
    def report(self) -> BenchmarkReport:
        """Returns the scores by country and facet; exact match is in the results alone, since the paper uses LAVE."""
        return replace(super().report(), further=())

    def tables(self, units: Sequence[ScoreUnit]) -> Iterator[TableSpec]:
        """Yields its tables by country and facet, with the published ones that there are."""
        from culture_tasks import published

        papers = tuple(name for name in published.names() if name.startswith("culturalvqa_"))
        for table in super().tables(units):
            yield replace(table, papers=papers, notes=("LAVE: the share of answers that the judge calls correct.",))

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
    variant: Variant,
    benchmark: Benchmark,
    table: Table[CulturalVqaRow] = QUESTION_TABLE,
    file: CultureFile | None = None,
) -> Task:
    """Returns a benchmark's task that asks questions in one way: the released ones, or those of an own culture."""
    country, shown = file.name if file else "", variant.facts["shown"]
    return Task(
        name=f"{benchmark.name}{variant.suffix}",
        about=variant.about,
        title=variant.titled(benchmark.title),
        languages=(file.language if file else "en",),
        metrics=partial(metrics, benchmark.groups),
        data=DataSet((table,), lambda settings: load(shown, settings, table, country)),
        prompt=partial(render, variant.prompt),
        score=score,
        decoding=variant.decoding,
        shows_images=shown in WITH_IMAGE,
        target=lambda doc: doc["references"],
        note="The paper doesn't give decoding settings: greedy.",
    )


def render(prompt: str, doc: CulturalVqaDoc) -> Prompt:
    """Returns the prompt for a question, the image before the text (section 5, Appendices H and I)."""
    file = prompt_file(__package__, prompt)
    if "examples" in doc:
        examples: list[str | Picture] = []
        for example in doc["examples"]:
            examples += [Picture(example["row"]), f"{example['question']}\n{example['answer']}"]
        return Prompt((file.text, *examples, Picture(), doc["question"]))
    slots = {"question": doc["question"], "country": doc.get("country_name", ""), "entities": doc.get("entities", "")}
    text = file.fill(slots)
    return Prompt((Picture(), text) if prompt == "vlm.v1" else (text,))


def metrics(groups: Mapping[str, Groups]) -> list[Metric]:
    """Returns the metrics of a task, with a mean of the judge's score for some groups.

    The judge's score, from 0 to 1, is ``lave`` (Appendix F): the share of answers that the judge calls correct,
    accuracy in the paper's sense.
    """
    return [
        JudgedScore(name=LAVE.name, title="LAVE", scale=SHARE, groups=groups),
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


def score(doc: CulturalVqaDoc, responses: Sequence[str]) -> Score:
    """Has the answers to a question graded; without reference answers, gives the prediction for a submission."""
    if not doc["references"]:
        prediction = {"id": doc["id"], "pred": answer_in(responses[0])}
        return Score(item=doc["id"], responses=responses, values={SUBMISSION: prediction})
    matches = [exact_match(answer_in(response), doc["references"]) for response in responses]
    return Score(
        item=doc["id"],
        responses=responses,
        question=doc["question"],
        references=doc["references"],
        groups=groups_of(doc, GROUPS),
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
