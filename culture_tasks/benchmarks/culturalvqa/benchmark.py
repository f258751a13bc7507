"""CulturalVQA as a benchmark: one set of questions, and what a model is shown of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from culture_tasks.benchmarks.culturalvqa import documents
from culture_tasks.benchmarks.culturalvqa.documents import (
    COUNTRIES,
    SOURCE,
    WITH_IMAGE,
    CulturalVqaDoc,
    Variant,
    country_of,
)
from culture_tasks.benchmarks.culturalvqa.rubrics import RUBRICS
from culture_tasks.benchmarks.culturalvqa.scoring import RubricName, metrics, score
from culture_tasks.benchmarks.culture_forms import CultureForm
from culture_tasks.benchmarks.cultures import BuiltCulture, OffersCultures
from culture_tasks.benchmarks.interface import Benchmark, DataSet, Decoding, Entry, Picture, Prompt, Task
from culture_tasks.benchmarks.reporting import BenchmarkReport
from culture_tasks.data.checking import DataReport
from culture_tasks.data.sources import Source
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.prompt_files import load as prompt_file


class Way(NamedTuple):
    """A way of asking the questions.

    Attributes:
        suffix: What the names of its tasks have after that of the benchmark.
        title: The end of its title.
        about: What it measures.
    """

    suffix: str
    title: str
    variant: Variant
    rubric: RubricName
    about: str


WAYS = (
    Way("", "", "vlm", "lave", "image and question (App. H)"),
    Way("_lave3", "LAVE's own scale", "vlm", "lave3", "graded on LAVE's own scale of 1-3 (Mañas et al., 2024)"),
    Way("_fewshot", "with examples", "fewshot", "lave", "with examples before the question (App. I)"),
    Way("_blind", "question alone", "blind", "lave", "question alone (section 5)"),
    Way("_country", "question and country", "country", "lave", "question and country (section 5)"),
    Way("_lens", "question and entities", "lens", "lave", "question and coarse visual entities (section 5)"),
)
DECODING = Decoding(max_tokens=64)


class CulturalVqa(Benchmark, OffersCultures):
    """CulturalVQA (Nayak et al., 2024)."""

    name = "culturalvqa"
    title = "CulturalVQA"
    paper = "Nayak et al., 2024"
    judge = "LAVE, GPT-4o"
    data = "Hub mair-lab/CulturalVQA"
    made_from = ("CANDLE",)

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns the tasks."""
        return tuple(task_of(way, name=f"{self.name}{way.suffix}", benchmark_title=self.title) for way in WAYS)

    def rubrics(self) -> Sequence[Rubric]:
        """Returns LAVE's rubric as the paper changed it, and LAVE's own."""
        return RUBRICS

    def report(self) -> BenchmarkReport:
        """Returns the numbers, tables and figures of the paper."""
        from culture_tasks.benchmarks.culturalvqa.report import REPORT

        return REPORT

    def check(self, data_folder: Path | None) -> DataReport:
        """Checks questions, answers and images."""
        return documents.check(data_folder)

    def culture_form(self) -> CultureForm:
        """Returns how the data of a further culture are made."""
        from culture_tasks.benchmarks.culturalvqa.culture import FORM

        return FORM

    def culture(self, built: BuiltCulture) -> Benchmark:
        """Returns the benchmark of a culture that people added."""
        from culture_tasks.benchmarks.culturalvqa.built import CulturalVqaCulture

        return CulturalVqaCulture(built)


def task_of(
    way: Way,
    *,
    name: str,
    benchmark_title: str,
    language: str = "en",
    source: Source = SOURCE,
    countries: Sequence[str] = COUNTRIES,
    country_named: Callable[[str | None], str] = country_of,
) -> Task:
    """Returns the task that asks questions in one way: the released ones, or those of a culture that people added."""
    return Task(
        name=name,
        about=way.about,
        title=", ".join(filter(None, (benchmark_title, way.title))),
        languages=(language,),
        metric=way.rubric,
        metrics=partial(metrics, way.rubric, countries),
        data=DataSet(
            (source,), lambda settings: documents.load(way.variant, settings.data_folder, source, country_named)
        ),
        prompt=partial(asked, way.variant),
        score=partial(score, way.rubric),
        decoding=DECODING,
        shows_images=way.variant in WITH_IMAGE,
        target=lambda doc: doc["references"],
        note="The paper doesn't give decoding settings: greedy.",
    )


def asked(variant: Variant, doc: CulturalVqaDoc) -> Prompt:
    """Returns the prompt for a question, the image before the text (section 5, Appendices H and I)."""
    file = prompt_file(__package__, f"{variant}.v1")
    if variant == "fewshot":
        shown = [(Picture(each["row"]), f"{each['question']}\n{each['answer']}") for each in doc["examples"]]
        examples = [part for example in shown for part in example]
        return Prompt((file.text, *examples, Picture(), doc["question"]))
    values = {"question": doc["question"]}
    if variant == "country":
        values["country"] = doc["country_name"]
    elif variant == "lens":
        values["entities"] = doc["entities"]
    text = file.fill(values)
    return Prompt((Picture(), text) if variant == "vlm" else (text,))


BENCHMARK = CulturalVqa()
