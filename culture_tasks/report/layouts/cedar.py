"""CEDAR: Table 1, the propensities of Tables 7 and 8, those of each language, and the prompt by data matrix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from culture_tasks.benchmarks.cedar.labels import EMOTIONS, LANGUAGES, MODALITIES
from culture_tasks.report import emotions
from culture_tasks.report.benchmarks import PERCENT, RATIO, VARIANCE
from culture_tasks.report.layouts.grid import SHORT, CellOf, Context, Place, cell_in, grid
from culture_tasks.report.model import Cell, Column, GroupValue, Scale, Table
from culture_tasks.report.numbers import Where
from culture_tasks.report.units import Measured

_GEPP = {"multimodal": 7, "text": 8}
_Key = tuple[str, str, str, Where, str]
"""Unit, entrant, statistic, what is held fixed, and emotion."""

_NEUTRAL = "1 is neutral; above, the emotion is named more often than the gold labels have it."


def tables(context: Context, measured: Sequence[Measured], values: Iterable[GroupValue]) -> Iterator[Table]:
    """Yields the tables of both modalities."""
    units = {each.unit.key: each for each in measured}
    cells = {
        (each.unit, each.entrant, each.statistic, each.cell.where, each.group): each.cell
        for each in values
        if each.statistic in ("gepp", "lsepp")
    }
    if any(f"cedar_{modality}" in units for modality in MODALITIES):
        yield _accuracy(context, units)
    for modality in reversed(MODALITIES):
        if f"cedar_{modality}" in units:
            yield _gepp(context, units[f"cedar_{modality}"], modality, cells)
            yield _lsepp(context, units[f"cedar_{modality}"], cells)
        yield from _matrices(context, units, modality)


def _accuracy(context: Context, units: Mapping[str, Measured]) -> Table:
    places: list[Place] = []
    for modality in ("multimodal", "text"):
        measured = units.get(f"cedar_{modality}")
        if measured is not None:
            places.extend(_accuracy_places(measured, modality))
    entrants = [
        key
        for key in context.entrants
        if any(key in units[f"cedar_{m}"].runs for m in MODALITIES if f"cedar_{m}" in units)
    ]
    note = (
        "Avg. is the mean over languages, Var. their sample variance. Languages that a run was told the model doesn't "
        "officially support are left out of both and stay empty."
    )
    title = "CEDAR: accuracy in percent by language"
    table = Table("cedar_table_1", title, ("Model",), (), (), "CEDAR, Table 1", "cedar", (note,))
    return grid(context, table, places, entrants, lambda key: (context.entrants[key].label,))


def _accuracy_places(measured: Measured, modality: str) -> Iterator[Place]:
    over = "Multimodal" if modality == "multimodal" else "Text-only"

    def place(name: str, label: str, cell: CellOf, scale: Scale) -> Place:
        return Place(
            Column(f"{modality}_{name}", label, scale, over),
            lambda entrant: cell(entrant) if entrant in measured.runs else None,
            {"modality": modality, "language": name},
            ("cedar_table_1",),
        )

    for language in LANGUAGES:
        yield place(language, language.upper(), cell_in(measured, (("language", language),)), PERCENT)
    yield place("average", "Avg.", lambda entrant: emotions.average(measured, entrant), PERCENT)
    yield place("variance", "Var.", lambda entrant: emotions.variance(measured, entrant), VARIANCE)


def _gepp(context: Context, measured: Measured, modality: str, cells: Mapping[_Key, Cell]) -> Table:
    key, number = measured.unit.key, _GEPP[modality]
    paper = f"cedar_table_{number}"
    places = [
        Place(
            Column(emotion, emotion, RATIO),
            lambda entrant, emotion=emotion: cells.get((key, entrant, "gepp", (), emotion)),  # type: ignore[misc]
            {"modality": modality, "emotion": emotion},
            (paper,),
        )
        for emotion in EMOTIONS
    ]
    title = f"{key}: global emotion prediction propensity (GEPP)"
    table = Table(paper, title, ("Model",), (), (), f"CEDAR, Table {number}", "cedar", (_NEUTRAL,))
    return grid(context, table, places, measured.runs, lambda entrant: (context.entrants[entrant].label,))


def _lsepp(context: Context, measured: Measured, cells: Mapping[_Key, Cell]) -> Table:
    key = measured.unit.key
    rows = {f"{entrant} {language}": (entrant, language) for entrant in measured.runs for language in LANGUAGES}

    def cell(row: str, emotion: str) -> Cell | None:
        entrant, language = rows[row]
        return cells.get((key, entrant, "lsepp", (("language", language),), emotion))

    places = [
        Place(Column(emotion, emotion, RATIO), lambda row, emotion=emotion: cell(row, emotion))  # type: ignore[misc]
        for emotion in EMOTIONS
    ]
    title = f"{key}: emotion prediction propensity by language (LSEPP)"
    table = Table(f"{key}_lsepp", title, ("Model", "Language"), (), (), "CEDAR, Figure 4", "cedar", (_NEUTRAL,))
    labels = {row: (context.entrants[entrant].label, SHORT[language]) for row, (entrant, language) in rows.items()}
    return grid(context, table, places, rows, labels.__getitem__, lambda row: rows[row][0])


def _matrices(context: Context, units: Mapping[str, Measured], modality: str) -> Iterator[Table]:
    """Yields a prompt by data matrix for each entrant that has any pair."""
    for entrant in context.entrants:
        rows: dict[str, dict[str, Cell]] = {
            prompt: {data: each for data in LANGUAGES if (each := _pair(units, modality, prompt, data, entrant))}
            for prompt in LANGUAGES
        }
        if any(rows.values()):
            yield _matrix(context, modality, entrant, rows)


def _pair(units: Mapping[str, Measured], modality: str, prompt: str, data: str, entrant: str) -> Cell | None:
    measured = units.get(f"cedar_{modality}_prompt_{prompt}_data_{data}")
    return measured.unit.cells.get(entrant) if measured is not None else None


def _matrix(context: Context, modality: str, entrant: str, rows: Mapping[str, Mapping[str, Cell]]) -> Table:
    columns = [Column(data, SHORT[data], PERCENT, "Data") for data in LANGUAGES]
    label = context.entrants[entrant].label
    places = [Place(column, lambda prompt, data=column.key: rows[prompt].get(data)) for column in columns]  # type: ignore[misc]
    title = f"CEDAR, {modality}: accuracy of {label} in percent, by the languages of prompt and data"
    table = Table(f"cedar_{modality}_matrix_{entrant}", title, ("Prompt",), (), (), "CEDAR, section 4.4", "cedar")
    return grid(context, table, places, LANGUAGES, lambda prompt: (SHORT[prompt],), lambda _: entrant)
