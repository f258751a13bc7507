"""Two figures of two raters: a scatter plot and a confusion table, readable in greyscale and by the colour-blind.

matplotlib is imported when a figure is drawn, and used without its global state.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from culture_tasks.metrics.rater_agreement import complete_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from culture_tasks.agreement.raters import Comparison
    from culture_tasks.metrics.rater_agreement import Statistic

# Okabe and Ito's colours, each with a marker of its own, so that languages differ without colour too.
_STYLES = (("#0072B2", "o"), ("#D55E00", "^"), ("#009E73", "s"), ("#CC79A7", "D"), ("#E69F00", "v"), ("#000000", "x"))
_IN_TITLE: tuple[tuple[Statistic, str], ...] = (
    ("pearson", "Pearson r"),
    ("krippendorff_alpha", "alpha"),
    ("mean_error", "mean error"),
)
_JITTER = 0.32
_MOST_POINTS = 3_000
_MOST_LANGUAGES = len(_STYLES)


class Scale(NamedTuple):
    """Lowest and highest rating of a rubric."""

    lowest: int
    highest: int


def scatter(comparison: Comparison, languages: Sequence[str], scale: Scale) -> Figure:
    """Draws one point per response, jittered so that equal ratings don't hide each other; colours are languages.

    Args:
        comparison: Two raters.
        languages: Language code of each response; beyond six, the rarest share one colour.
        scale: The rubric's scale.
    """
    first, second, rated = complete_pairs(comparison.first.ratings, comparison.second.ratings)
    labels = np.array(_merged(languages), dtype=object)[rated]
    figure, axes = _figure(comparison, scale)
    rng = np.random.default_rng(0)
    shown = rng.permutation(first.size)[:_MOST_POINTS]
    points = np.stack([first, second])[:, shown] + rng.uniform(-_JITTER, _JITTER, size=(2, shown.size))
    size = float(np.clip(20_000 / max(shown.size, 1), 6, 28))
    for label, (colour, marker) in zip(sorted(set(labels)), _STYLES, strict=False):
        name = f"{_ascii(label)} (n={np.count_nonzero(labels == label)})"
        across, up = points[:, labels[shown] == label]
        axes.scatter(across, up, size, colour, marker=marker, alpha=0.6, linewidths=0.4, rasterized=True, label=name)
    axes.plot(scale, scale, color="0.4", linewidth=1, linestyle="--", label="equal ratings", zorder=0)
    drawn = f"{shown.size} shown,\ndrawn at random" if shown.size < first.size else None
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, title=drawn, markerscale=1.5)
    return figure


def confusion(comparison: Comparison, scale: Scale) -> Figure:
    """Draws how often each pair of ratings occurs; ratings between two values are rounded, halves up."""
    from matplotlib.colors import LogNorm

    first, second, _ = complete_pairs(comparison.first.ratings, comparison.second.ratings)
    counts = confusion_counts(first, second, scale)
    figure, axes = _figure(comparison, scale)
    norm = LogNorm(vmin=1, vmax=max(2, int(counts.max())))
    image = axes.imshow(
        np.ma.masked_equal(counts.T, 0),
        origin="lower",
        cmap="cividis_r",
        norm=norm,
        extent=_extent(scale),
        aspect="equal",
    )
    for (row, column), count in np.ndenumerate(counts):
        if count:
            ink = "white" if norm(int(count)) > 0.55 else "black"
            place = (scale.lowest + row, scale.lowest + column)
            axes.text(*place, str(count), ha="center", va="center", color=ink, fontsize=7)
    figure.colorbar(image, ax=axes, label="responses (logarithmic)", shrink=0.8)
    return figure


def confusion_counts(first: NDArray[np.float64], second: NDArray[np.float64], scale: Scale) -> NDArray[np.intp]:
    """Counts pairs of ratings: a row for each value of the first rater, a column for each value of the second."""
    width = scale.highest - scale.lowest + 1
    rows, columns = (np.floor(ratings + 0.5).astype(np.intp) - scale.lowest for ratings in (first, second))
    return np.bincount(rows * width + columns, minlength=width * width).reshape(width, width)


def write_pictures(
    comparisons: Sequence[Comparison], languages: Sequence[str], scale: Scale, folder: Path
) -> list[Path]:
    """Writes ``scatter`` and ``confusion`` of each comparison as PNG and SVG, and returns the paths.

    From the second comparison on, the file name has its number, such as ``scatter_2.png``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for number, comparison in enumerate(comparisons, start=1):
        suffix = "" if number == 1 else f"_{number}"
        figures = {"scatter": scatter(comparison, languages, scale), "confusion": confusion(comparison, scale)}
        for name, figure in figures.items():
            paths += _save(figure, folder / f"{name}{suffix}")
    return paths


def _save(figure: Figure, stem: Path) -> list[Path]:
    import matplotlib as mpl

    png, svg = stem.with_suffix(".png"), stem.with_suffix(".svg")
    with mpl.rc_context({"svg.hashsalt": "culture-tasks"}):
        figure.savefig(png, dpi=160)
        figure.savefig(svg, dpi=160, metadata={"Date": None})
    return [png, svg]


def _figure(comparison: Comparison, scale: Scale) -> tuple[Figure, Axes]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 5.8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    ticks = range(scale.lowest, scale.highest + 1)
    left, right, bottom, top = _extent(scale)
    axes.set(xlim=(left, right), ylim=(bottom, top), xticks=ticks, yticks=ticks)
    axes.set_aspect("equal")
    axes.set_xlabel(f"rating by {_ascii(comparison.first.name)}", parse_math=False)
    axes.set_ylabel(f"rating by {_ascii(comparison.second.name)}", parse_math=False)
    who = "\n".join(rater.description for rater in (comparison.first, comparison.second) if rater.identities)
    lines = [line for part in who.split("\n") for line in textwrap.wrap(_ascii(part), 110)]
    figure.suptitle(_summary(comparison), fontsize=9, parse_math=False)
    figure.supxlabel("\n".join(lines), fontsize=6, color="0.25", parse_math=False)
    return figure, axes


def _summary(comparison: Comparison) -> str:
    overall = comparison.groups[0].agreement
    parts = [f"{title} {overall.estimates[name].text}" for name, title in _IN_TITLE]
    return f"{overall.pairs} responses\n{',  '.join(parts)}"


def _extent(scale: Scale) -> tuple[float, float, float, float]:
    return scale.lowest - 0.5, scale.highest + 0.5, scale.lowest - 0.5, scale.highest + 0.5


def _merged(languages: Sequence[str]) -> list[str]:
    names, counts = np.unique(np.array(languages, dtype=object), return_counts=True)
    if names.size <= _MOST_LANGUAGES:
        return list(languages)
    kept = set(names[np.argsort(-counts, kind="stable")][: _MOST_LANGUAGES - 1])
    return [language if language in kept else "other" for language in languages]


def _ascii(text: str) -> str:
    """Returns the text in characters that every font has."""
    return text.encode("ascii", "backslashreplace").decode("ascii")
