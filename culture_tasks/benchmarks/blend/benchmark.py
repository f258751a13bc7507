"""BLEnD as a benchmark: 16 regions, asked in their language and in English, by two prompts, and multiple choice.

The rules of its SemEval task forbid training on its data: they are for evaluation alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path

from culture_tasks.benchmarks.blend import documents
from culture_tasks.benchmarks.blend.documents import CHOICE_SOURCE, PAPER_NAMES, Wording
from culture_tasks.benchmarks.blend.official import OFFICIAL_LANGUAGES, require
from culture_tasks.benchmarks.blend.regions import LANGUAGES, REGIONS, TOPICS, Region
from culture_tasks.benchmarks.blend.scoring import OFFICIAL, SEM_B, SEM_W, metrics, score, score_choice
from culture_tasks.benchmarks.choices import ACCURACY, PERCENT, UNPARSED, by_likelihood
from culture_tasks.benchmarks.interface import Benchmark, DataSet, Decoding, Documents, Entry, Group, Prompt, Tag, Task
from culture_tasks.benchmarks.reporting import (
    MODEL,
    At,
    BenchmarkReport,
    ColumnOf,
    ContrastOf,
    Field,
    FurtherScore,
    RunFacts,
    TableOf,
    UnitOf,
    bars_by,
    columns_by,
)
from culture_tasks.data.checking import DataReport
from culture_tasks.settings import Settings
from culture_tasks.vocabulary import places

_DECODING = Decoding(max_tokens=512, top_p=1.0)
_PAPER = "BLEnD (Myung et al., 2024)"
_TOPICS = {topic: topic.replace("_", " ").capitalize() for topic in TOPICS}
_OF_CARE = {"Algeria": "Arabic", "China": "Chinese"}  # the regions of CARE's Table 16, and their columns there
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

    @cache  # noqa: B019 - one object a process
    def report(self) -> BenchmarkReport:
        """Returns the numbers by region and topic, in the region's language beside English, and in CARE's Table 16."""
        # The north of Nigeria isn't a part of it in ISO 3166-2, so its questions count as Nigeria's.
        codes = {"Assam": "IN-AS", "Northern Nigeria": "NG", "West Java": "ID-JB"}
        known = places((region.label for region in REGIONS), codes)
        sem_b, by = "SEM-B (percent)", {"region": "regions", "topic": "topics"}
        return BenchmarkReport(
            fields=(
                Field("region", tuple(region.label for region in REGIONS), places=known),
                Field("topic", tuple(TOPICS), _TOPICS),
            ),
            splits=(("region",), ("topic",)),
            culture="region",
            further=(
                FurtherScore(SEM_W, PERCENT),
                FurtherScore(f"{SEM_W}{OFFICIAL}", PERCENT),
                FurtherScore(UNPARSED.name, UNPARSED.scale),
            ),
            tables=_tables,
            figures=tuple(
                bars_by(
                    name, key=f"{kind}_{plural}", title=f"{title} by {name}", source=_PAPER, value=value, units=units
                )
                for kind, title, value, units, names in (
                    ("blend", "BLEnD", sem_b, lambda unit: not (_is_multiple_choice(unit) or _is_official(unit)), by),
                    ("blend_official", "BLEnD, the paper's matcher,", sem_b, _is_official, by),
                    (
                        "blend_mcq",
                        "BLEnD, multiple choice,",
                        "Accuracy (percent)",
                        _is_multiple_choice,
                        {"region": "regions"},
                    ),
                )
                for name, plural in names.items()
            ),
            contrasts=(
                ContrastOf(
                    kind="language",
                    key="blend_languages",
                    title="BLEnD asked in English and in the region's language",
                    source=_PAPER,
                    beside=_is_beside,
                    splits=(("region",),),
                    words=("asked in English", "asked in the region's language"),
                    parts=("English", "Native"),
                    values={"score": sem_b},
                    groups="region",
                    series="asked in",
                    headers=MODEL,
                    panel=lambda number: f"{number.model} · {number.title}",
                ),
            ),
        )


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


def _is_multiple_choice(unit: str) -> bool:
    return unit.startswith("blend_mcq")


def _is_official(unit: str) -> bool:
    return unit.startswith(f"blend{OFFICIAL}")


def _is_in_english(unit: str) -> bool:
    return unit.startswith(("blend_en", "blend_mcq", f"blend{OFFICIAL}_en"))


def _tables(units: Iterable[UnitOf]) -> Iterator[TableOf]:
    in_the_region_s_language = []
    for unit in units:
        if _is_multiple_choice(unit.key):
            yield _by_region(unit, "score", "accuracy of multiple choice")
            yield _by_region(unit, UNPARSED.name, "replies that name no choice")
            continue
        ending, rule = (OFFICIAL, ", the paper's matcher") if _is_official(unit.key) else ("", "")
        yield _by_region(unit, "score", f"SEM-B{rule}")
        yield _by_region(unit, f"{SEM_W}{ending}", f"SEM-W{rule}")
        yield TableOf(
            key=f"{unit.key}_by_topic",
            title=f"{unit.key}: SEM-B{rule} in percent, by topic",
            source=_PAPER,
            columns=columns_by("topic", _TOPICS, unit.key),
            headers=MODEL,
        )
        if not _is_in_english(unit.key):
            in_the_region_s_language.append(unit)
    yield from _as_in_care(in_the_region_s_language)


def _regions(unit: UnitOf) -> list[Region]:
    """Returns the regions that the unit's tasks end in; all of them for a task of the user's own."""
    slugs = {task.removesuffix("_ll") for task in unit.tasks}
    return [region for region in REGIONS if any(slug.endswith(f"_{region.slug}") for slug in slugs)] or list(REGIONS)


def _by_region(unit: UnitOf, statistic: str, quantity: str) -> TableOf:
    columns = [
        ColumnOf(
            region.slug,
            region.label,
            At(unit.key, statistic, (("region", region.label),)),
            LANGUAGES["en" if _is_in_english(unit.key) else region.language],
        )
        for region in _regions(unit)
    ]
    notes: tuple[str, ...] = ()
    if len(columns) > 1:
        columns.append(ColumnOf("average", "Average", At(unit.key, statistic), sums_up=True))
        notes = ("Average: the mean over the regions, each of which weighs the same.",)
    if _is_multiple_choice(unit.key) and statistic == "score":
        columns.append(ColumnOf(UNPARSED.name, "Unparsed", At(unit.key, UNPARSED.name)))
        notes = (*notes, "Unparsed: the share of replies that name no choice, which count as wrong.")
    return TableOf(
        key=f"{unit.key}_{statistic}_by_region",
        title=f"{unit.key}: {quantity} in percent, by region",
        source=_PAPER,
        columns=tuple(columns),
        headers=MODEL,
        notes=notes,
    )


def _as_in_care(units: Iterable[UnitOf]) -> Iterator[TableOf]:
    columns = tuple(
        ColumnOf(
            f"{unit.key}_{region.slug}",
            _OF_CARE[region.name],
            At(unit.key, where=(("region", region.label),)),
            over=unit.key,
        )
        for unit in units
        for region in _regions(unit)
        if region.name in _OF_CARE
    )
    if columns:
        yield TableOf(
            key="blend_as_in_care",
            title="BLEnD: SEM-B in percent, in the languages of CARE's generalisation table",
            source="CARE, Figure 4 and Table 16",
            columns=columns,
            headers=MODEL,
            notes=(
                "CARE prints an accuracy, and says neither by which match nor with which prompt; its Arabic is taken "
                "to be Algeria's. Its own numbers therefore stand in a table of their own.",
            ),
        )


def _is_beside(first: RunFacts, second: RunFacts) -> bool:
    """Whether one run asks in English what another run of the model asks in the region's language."""
    return first.task == re.sub(rf"^blend({OFFICIAL})?_", r"blend\1_en_", second.task) and first.row == second.row


BENCHMARK = Blend()
