"""The sheets that raters fill in: a CSV file, and a page without a network; both blind to judge and model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from culture_tasks.errors import SettingsError
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.pages.markup import as_markup, asset, content_security_policy, templates_of
from culture_tasks.pages.thumbnails import Thumbnails
from culture_tasks.people.rated_responses import UNKNOWN, language_of_script
from culture_tasks.people.spotcheck_design import COLUMNS
from culture_tasks.text_tables import write_csv

if TYPE_CHECKING:
    from culture_tasks.people.spotcheck_design import DrawnRow
    from culture_tasks.people.spotcheck_draw import Response, SheetDraw

_SIDE = 900
"""Pixels of the longer side of an image on the page."""


class _Entry(NamedTuple):
    """One response as a sheet shows it."""

    row: DrawnRow
    response: Response
    language: str
    image: str | None
    ratings: Sequence[int]
    rubric: int


def write_sheets(
    draw: SheetDraw, folder: Path, *, raters: int = 1, shared: int | None = None, images: Path | None = None
) -> list[Path]:
    """Writes a CSV file and a page for each rater, and returns their paths.

    The first ``shared`` rows, or all, are on every sheet, and each of the others on one. Without a folder of images the
    sheets have none.

    Raises:
        SettingsError: If a page would lack an image that a response needs.
    """
    thumbnails, rubrics = Thumbnails(images, side=_SIDE), _rubrics(draw.responses)
    entries: list[_Entry] = []
    for row, response in zip(draw.design.rows, draw.responses, strict=True):
        # Han characters look otherwise in Chinese than in Japanese, so that the language is that of the script.
        languages = (language_of_script(text) for text in (response.text, response.question))
        language = next((language for language in languages if language != UNKNOWN), "")
        ratings, rubric = range(row.lowest, row.highest + 1), list(rubrics).index(response.rubric.name)
        entries.append(_Entry(row, response, language, thumbnails.address(response.image), ratings, rubric))
    missing = [entry for entry in entries if entry.response.image and entry.image is None]
    if images is not None and missing:
        raise SettingsError(
            f"spotcheck: --images {images}: {len(missing)} of the images aren't there, or can't be read, such as "
            f"{missing[0].response.image!r:.60}. Name the folder that has them."
        )
    shared = len(entries) if shared is None else shared
    paths = []
    for rater in range(raters):
        stem, name = (f"sheet_{rater + 1}", f"rater {rater + 1}") if raters > 1 else ("sheet", "")
        dealt = [entry for place, entry in enumerate(entries) if place < shared or (place - shared) % raters == rater]
        paths += [folder / f"{stem}.csv", folder / f"{stem}.html"]
        write_csv(paths[-2], COLUMNS, _lines(dealt, name))
        paths[-1].write_text(_page(dealt, list(rubrics.values()), name), encoding="utf-8", newline="\n")
    return paths


def _rubrics(responses: Sequence[Response]) -> dict[str, str]:
    """Returns what the judge is told of each rubric, with dots in place of what it grades."""
    dots = JudgeItem("…", ("…",), "…", "…")
    return {
        rubric.name: "\n\n".join(message["content"] for message in rubric.messages(dots, delimiters=False))
        for rubric in {response.rubric.name: response.rubric for response in responses}.values()
    }


def _lines(entries: Sequence[_Entry], rater: str) -> Iterator[list[str | float | None]]:
    for row, response, *_ in entries:
        shown = [row.row, response.culture, response.question, "\n".join(response.references), response.text]
        yield [*shown, response.image, row.lowest, row.highest, None, None, rater or None]


def _page(entries: Sequence[_Entry], rubrics: Sequence[str], rater: str) -> str:
    style = asset("culture_tasks.pages", "page.css") + asset("culture_tasks.people", "page/sheet.css")
    script = asset("culture_tasks.people", "page/sheet.js")
    template = templates_of("culture_tasks.people", "page").get_template("sheet.html")
    return template.render(
        entries=entries,
        rubrics=rubrics,
        rater=rater,
        cultures=list(dict.fromkeys(entry.response.culture for entry in entries)),
        policy=content_security_policy(style, script),
        style=as_markup(style),
        script=as_markup(script),
    )
