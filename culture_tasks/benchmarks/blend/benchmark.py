"""BLEnD as a benchmark: 16 regions, asked in their language and in English, by two prompts, and multiple choice.

The rules of its SemEval task forbid training on its data: they are for evaluation alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path

from culture_tasks.benchmarks.blend import documents
from culture_tasks.benchmarks.blend.documents import CHOICE_SOURCE, PAPER_NAMES, Wording
from culture_tasks.benchmarks.blend.official import OFFICIAL_LANGUAGES, require
from culture_tasks.benchmarks.blend.regions import REGIONS, Region
from culture_tasks.benchmarks.blend.scoring import OFFICIAL, SEM_B, SEM_W, metrics, score, score_choice
from culture_tasks.benchmarks.choices import ACCURACY, UNPARSED, by_likelihood
from culture_tasks.benchmarks.interface import Benchmark, DataSet, Decoding, Documents, Entry, Group, Prompt, Tag, Task
from culture_tasks.benchmarks.reporting import BenchmarkReport
from culture_tasks.data.checking import DataReport
from culture_tasks.settings import Settings

_DECODING = Decoding(max_tokens=512, top_p=1.0)
_NOTE = "Decoding: the authors' code. The rules of its SemEval task forbid training on these data."


class Blend(Benchmark):
    """BLEnD (Myung et al., 2024)."""

    name = "blend"
    title = "BLEnD"
    paper = "Myung et al., 2024"
    data = "Hub nayeon212/BLEnD; prompts from the authors' repository; not for training"
    not_for_training = "the rules of its SemEval task forbid it: its data are for evaluation alone"

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns a group for each way of asking, one of multiple choice, and the same with the paper's matcher."""
        ways = [(english, wording) for english in (False, True) for wording in PAPER_NAMES]
        return (
            *(entry for english, wording in ways for entry in _short_answers(wording, english=english, official=False)),
            *_multiple_choice(),
            *(entry for english, wording in ways for entry in _short_answers(wording, english=english, official=True)),
        )

    def check(self, data_folder: Path | None) -> DataReport:
        """Checks the questions, prompts and choices of all regions."""
        return documents.check(data_folder)

    def report(self) -> BenchmarkReport:
        """Returns how it is reported."""
        from culture_tasks.benchmarks.blend.report import REPORT

        return REPORT


def _short_answers(wording: Wording, *, english: bool, official: bool) -> Iterator[Entry]:
    name = f"blend{OFFICIAL if official else ''}{'_en' if english else ''}{'' if wording == 'inst' else f'_{wording}'}"
    language, matcher = "English" if english else "the region's language", "; the paper's matcher" if official else ""
    about = f"short answers on everyday life, asked in {language} ({PAPER_NAMES[wording]}){matcher}"
    how = f"asked in {language}{'' if wording == 'inst' else ' as a person from the region'}{matcher.replace(';', ',')}"
    tasks = [
        _task(f"{name}_{region.slug}", about, how, region, wording, english=english, tag=name if official else "")
        for region in REGIONS
        if (region.language != "en" if english else not official or region.language in OFFICIAL_LANGUAGES)
    ]
    members = tuple(task.name for task in tasks)
    if official:
        yield Tag(name=name, about=about, members=members)
    else:  # as in the paper, each region weighs the same
        title = f"{Blend.title}, {how}"
        yield Group(name=name, about=about, title=title, members=members, means=(SEM_B, SEM_W), weight_by_size=False)
    yield from tasks


def _task(name: str, about: str, how: str, region: Region, wording: Wording, *, english: bool, tag: str = "") -> Task:
    """Returns a task with short answers; those with a tag are scored by the paper's matcher."""
    official = bool(tag)
    language = "en" if english else region.language
    sources = [documents.annotation_source(region), documents.question_source(region)]
    if language != "en":
        sources.append(documents.prompt_source(region))
    return Task(
        name=name,
        about=about,
        title=f"{Blend.title}, {region.label}, {how}",
        languages=(language,),
        metric=SEM_B + OFFICIAL if official else SEM_B,
        metrics=partial(metrics, official=official),
        data=DataSet(tuple(sources), partial(_documents, region, wording, english=english, official=official)),
        prompt=lambda doc: Prompt((doc["prompt"],)),
        score=partial(score, official=official),
        decoding=_DECODING,
        target=lambda doc: next(iter(doc["annotations"][0]["answers"] or doc["annotations"][0]["en_answers"])),
        tag=tag,
        note=_NOTE,
    )


def _documents(region: Region, wording: Wording, settings: Settings, *, english: bool, official: bool) -> Documents:
    if official:
        require("en" if english else region.language)
    return Documents(documents.load(region, settings.data_folder, wording=wording, english=english))


def _multiple_choice() -> Iterator[Entry]:
    about = "multiple choice on everyday life, in English"
    tasks = [
        Task(
            name=f"blend_mcq_{region.slug}",
            about=about,
            title=f"{Blend.title}, {region.label}, multiple choice",
            languages=("en",),
            metric=ACCURACY.name,
            metrics=lambda: (ACCURACY, UNPARSED),
            data=DataSet((CHOICE_SOURCE,), partial(documents.load_choices, region)),
            prompt=lambda doc: Prompt((doc["prompt"],)),
            score=score_choice,
            decoding=_DECODING,
            target=lambda doc: doc["answer"],
            note=_NOTE,
        )
        for region in REGIONS
    ]
    variants = [by_likelihood(task, lambda doc: [letter for letter, _ in doc["choices"]]) for task in tasks]
    for name, members in (("blend_mcq", tasks), ("blend_mcq_ll", variants)):
        yield Group(
            name=name,
            about=members[0].about,
            title=f"{Blend.title}, multiple choice{', by log-likelihood' if members is variants else ''}",
            members=tuple(task.name for task in members),
            means=(ACCURACY.name, UNPARSED.name),
            weight_by_size=False,
            harnesses=members[0].harnesses,
        )
        yield from members


BENCHMARK = Blend()
