"""CulturalVQA as a benchmark: one set of questions, and what a model is shown of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

from culture_tasks.benchmarks.culturalvqa import documents
from culture_tasks.benchmarks.culturalvqa.documents import SOURCE, WITH_IMAGE, CulturalVqaDoc, Variant
from culture_tasks.benchmarks.culturalvqa.rubrics import RUBRICS
from culture_tasks.benchmarks.culturalvqa.scoring import RubricName, metrics, score
from culture_tasks.benchmarks.interface import Benchmark, DataSet, Decoding, Entry, Picture, Prompt, Task
from culture_tasks.benchmarks.reporting import BenchmarkReport
from culture_tasks.data.checking import DataReport
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.prompt_files import load as prompt_file

_TASKS: tuple[tuple[str, str, Variant, RubricName, str], ...] = (
    ("culturalvqa", "", "vlm", "lave", "image and question (App. H)"),
    ("culturalvqa_lave3", "LAVE's own scale", "vlm", "lave3", "graded on LAVE's own scale of 1-3 (Mañas et al., 2024)"),
    ("culturalvqa_fewshot", "with examples", "fewshot", "lave", "with examples before the question (App. I)"),
    ("culturalvqa_blind", "question alone", "blind", "lave", "question alone (section 5)"),
    ("culturalvqa_country", "question and country", "country", "lave", "question and country (section 5)"),
    ("culturalvqa_lens", "question and entities", "lens", "lave", "question and coarse visual entities (section 5)"),
)
"""Name, end of the title, what is shown, rubric and what it is about of each task."""


class CulturalVqa(Benchmark):
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
        return tuple(_task(*described) for described in _TASKS)

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


def _task(name: str, title: str, variant: Variant, rubric: RubricName, about: str) -> Task:
    return Task(
        name=name,
        about=about,
        title=", ".join(filter(None, (CulturalVqa.title, title))),
        languages=("en",),
        metric=rubric,
        metrics=partial(metrics, rubric),
        data=DataSet((SOURCE,), lambda settings: documents.load(variant, settings.data_folder)),
        prompt=partial(asked, variant),
        score=partial(score, rubric),
        decoding=Decoding(max_tokens=64),
        shows_images=variant in WITH_IMAGE,
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
