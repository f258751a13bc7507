"""Two figures of two raters: a scatter plot and a confusion table, readable in greyscale and by the colour-blind."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from culture_tasks.metrics.rater_agreement import Statistic, complete_pairs
from culture_tasks.pages.pictures import cleaned, look, save, shown, styled
from culture_tasks.people.raters import RaterAgreement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_IN_TITLE: tuple[tuple[Statistic, str], ...] = (
    ("pearson", "Pearson r"),
    ("krippendorff_alpha", "alpha"),
    ("mean_error", "mean error"),
)
_JITTER = 0.32
_MOST_POINTS = 3_000


def scatter(comparison: RaterAgreement, languages: Sequence[str], scale: tuple[int, int]) -> Figure:
    """Draws one point per response, jittered so that equal ratings don't hide each other; colours are languages."""
    first, second, rated = complete_pairs(comparison.first.ratings, comparison.second.ratings)
    labels = np.array(languages, dtype=object)[rated]
    figure, axes = _figure(comparison, scale)
    rng = np.random.default_rng(0)
    sample = rng.permutation(first.size)[:_MOST_POINTS]
    points = np.stack([first, second])[:, sample] + rng.uniform(-_JITTER, _JITTER, size=(2, sample.size))
    size = float(np.clip(20_000 / max(sample.size, 1), 6, 28))
    for place, label in enumerate(sorted(set(labels))):
        name = f"{shown(cleaned(label))} (n={np.count_nonzero(labels == label)})"
        style, (across, up) = look(place), points[:, labels[sample] == label]
        marks: dict[str, Any] = {"marker": style.marker, "alpha": 0.6, "linewidths": 0.4, "rasterized": True}
        axes.scatter(across, up, size, style.colour, label=name, **marks)
    axes.plot(scale, scale, color="0.4", linewidth=1, linestyle="--", label="equal ratings", zorder=0)
    title = f"{sample.size} shown,\ndrawn at random" if sample.size < first.size else None
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, title=title, markerscale=1.5)
    return figure


def confusion(comparison: RaterAgreement, scale: tuple[int, int]) -> Figure:
    """Draws how often each pair of ratings occurs; ratings between two values are rounded, halves up."""
    from matplotlib.colors import LogNorm

    first, second, _ = complete_pairs(comparison.first.ratings, comparison.second.ratings)
    counts = confusion_counts(first, second, scale)
    figure, axes = _figure(comparison, scale)
    norm = LogNorm(vmin=1, vmax=max(2, int(counts.max())))
    grid = np.ma.masked_equal(counts.T, 0)
    image = axes.imshow(
        grid, origin="lower", cmap="cividis_r", norm=norm, extent=(*_ends(scale), *_ends(scale)), aspect="equal"
    )
    for (row, column), count in np.ndenumerate(counts):
        if count:
            ink = "white" if norm(int(count)) > 0.55 else "black"
            axes.text(scale[0] + row, scale[0] + column, str(count), ha="center", va="center", color=ink, fontsize=7)
    figure.colorbar(image, ax=axes, label="responses (logarithmic)", shrink=0.8)
    return figure


def confusion_counts(
    first: NDArray[np.float64], second: NDArray[np.float64], scale: tuple[int, int]
) -> NDArray[np.intp]:
    """Counts pairs of ratings: a row for each value of the first rater, a column for each value of the second."""
    width = scale[1] - scale[0] + 1
    rows, columns = (np.floor(ratings + 0.5).astype(np.intp) - scale[0] for ratings in (first, second))
    return np.bincount(rows * width + columns, minlength=width * width).reshape(width, width)


def write_pictures(
    comparisons: Sequence[RaterAgreement], languages: Sequence[str], scale: tuple[int, int], folder: Path
) -> list[Path]:
    """Writes ``scatter`` and ``confusion`` of each comparison as PNG and SVG, and returns the paths.

    From the second comparison on, the file name has its number, such as ``scatter_2.png``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    raters = [rater for comparison in comparisons for rater in (comparison.first, comparison.second)]
    paths: list[Path] = []
    with styled([*map(str, languages), *(f"{rater.name} {rater.description}" for rater in raters)]):
        for number, comparison in enumerate(comparisons, start=1):
            suffix = "" if number == 1 else f"_{number}"
            paths += save(scatter(comparison, languages, scale), folder / f"scatter{suffix}")
            paths += save(confusion(comparison, scale), folder / f"confusion{suffix}")
    return paths


def _figure(comparison: RaterAgreement, scale: tuple[int, int]) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 5.8), layout="constrained")
    axes = figure.add_subplot()
    ticks, ends = range(scale[0], scale[1] + 1), _ends(scale)
    axes.set(xlim=ends, ylim=ends, xticks=ticks, yticks=ticks, aspect="equal")
    axes.set_xlabel(f"rating by {shown(cleaned(comparison.first.name))}")
    axes.set_ylabel(f"rating by {shown(cleaned(comparison.second.name))}")
    overall = comparison.groups[0].agreement
    estimates = (f"{title} {overall.estimates[name].text}" for name, title in _IN_TITLE)
    figure.suptitle(f"{overall.pairs} responses\n{',  '.join(estimates)}", fontsize=9)
    who = [rater.description for rater in (comparison.first, comparison.second) if rater.identities]
    lines = [line for part in "\n".join(who).split("\n") for line in textwrap.wrap(cleaned(part), 110)]
    figure.supxlabel("\n".join(lines), fontsize=6, color="0.25")
    return figure, axes


def _ends(scale: tuple[int, int]) -> tuple[float, float]:
    return scale[0] - 0.5, scale[1] + 0.5
