"""Writing a report in the user's formats."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from culture_tasks.errors import SettingsError, nearest
from culture_tasks.report.data import write_csv, write_json
from culture_tasks.report.latex import write_latex
from culture_tasks.report.markdown import write_markdown
from culture_tasks.report.model import Report

if TYPE_CHECKING:
    from culture_tasks.benchmarks.tables import Figure

Format = Literal["markdown", "latex", "csv", "json", "html", "png", "svg", "pdf"]
FORMATS: tuple[Format, ...] = get_args(Format)


def write_report(
    report: Report,
    folder: Path,
    formats: Sequence[Format],
    images: Path | None = None,
    progress: Callable[[Sequence[Figure]], Iterable[Figure]] = iter,
) -> list[Path]:
    """Writes a report into a folder, which is made if need be, and returns the paths.

    ``images`` is a folder with the images that samples name, for small copies in the HTML file; ``progress`` yields the
    figures that it gets, to show how many are drawn. A folder that can't be written is a SettingsError.
    """
    files: list[Literal["png", "svg", "pdf"]] = [name for name in ("png", "svg", "pdf") if name in formats]
    paths: list[Path] = []
    with in_one_step(folder) as part:
        if "csv" in formats:
            paths += write_csv(report, part)
        if "json" in formats:
            paths += write_json(report, part)
        if "markdown" in formats:
            paths += write_markdown(report, part, next((name for name in ("png", "svg") if name in files), ""))
        if "latex" in formats:
            paths += write_latex(report, part)
        if "html" in formats:
            from culture_tasks.report.html.page import write_html

            paths += write_html(report, part, images=images, progress=progress)
        if files:
            from culture_tasks.report.drawing import write_figures

            paths += write_figures(report.figures, part / "figures", files, progress)
    return [folder / path.relative_to(part) for path in paths]


@contextmanager
def in_one_step(folder: Path) -> Iterator[Path]:
    """Yields an empty folder, whose files take their places in the user's folder once all of them are written.

    A link in the place of a file is replaced, and a link in the place of a folder is refused: nothing is written where
    a link leads. A folder that can't be written is a SettingsError.
    """
    part = folder / f".{uuid.uuid4().hex}"
    try:
        part.mkdir(parents=True)
        yield part
        files = [path.relative_to(part) for path in sorted(part.rglob("*")) if path.is_file()]
        if links := {parent for path in files for parent in path.parents[:-1] if (folder / parent).is_symlink()}:
            raise SettingsError(
                f"report: {folder / min(links)} is a link. Remove it, or choose another folder with -o."
            )
        for path in files:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (part / path).replace(folder / path)
    except OSError as error:
        raise SettingsError(
            f"report: can't write to {folder} ({error.strerror}: {error.filename}). Choose another folder with -o."
        ) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def parse_formats(text: str) -> tuple[Format, ...]:
    """Reads a list of formats with commas; ``all`` is all of them, and an unknown name, or none, is a SettingsError."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in (*FORMATS, "all"):
            raise SettingsError(
                f"report: unknown format {name!r}.{nearest(name, FORMATS)} Expected one of {', '.join(FORMATS)}, or "
                "all."
            )
    return tuple(name for name in FORMATS if name in names or "all" in names)
