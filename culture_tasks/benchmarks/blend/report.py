"""How BLEnD is reported: by region and topic, in the region's language beside English, and in CARE's Table 16."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from culture_tasks.benchmarks.blend.regions import LANGUAGES, REGIONS, TOPICS, Region
from culture_tasks.benchmarks.blend.scoring import OFFICIAL, SEM_W
from culture_tasks.benchmarks.choices import PERCENT, UNPARSED
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
from culture_tasks.vocabulary import places

_PAPER = "BLEnD (Myung et al., 2024)"
_PLACES = places(
    (region.label for region in REGIONS), {"Assam": "IN-AS", "Northern Nigeria": "NG", "West Java": "ID-JB"}
)
"""The north of Nigeria isn't a part of it in ISO 3166-2, so its questions count as Nigeria's."""
_TOPICS = {topic: topic.replace("_", " ").capitalize() for topic in TOPICS}
_OF_CARE = {"Algeria": "Arabic", "China": "Chinese"}  # the regions of CARE's Table 16, and their columns there


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


_SEM_B = "SEM-B (percent)"
_BY = {"region": "regions", "topic": "topics"}

REPORT = BenchmarkReport(
    fields=(
        Field("region", tuple(region.label for region in REGIONS), places=_PLACES),
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
        bars_by(name, key=f"{kind}_{plural}", title=f"{title} by {name}", source=_PAPER, value=value, units=units)
        for kind, title, value, units, names in (
            ("blend", "BLEnD", _SEM_B, lambda unit: not (_is_multiple_choice(unit) or _is_official(unit)), _BY),
            ("blend_official", "BLEnD, the paper's matcher,", _SEM_B, _is_official, _BY),
            ("blend_mcq", "BLEnD, multiple choice,", "Accuracy (percent)", _is_multiple_choice, {"region": "regions"}),
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
            values={"score": _SEM_B},
            groups="region",
            series="asked in",
            headers=MODEL,
            panel=lambda number: f"{number.model} · {number.title}",
        ),
    ),
)
