"""Three pictures of rated responses: what questions there are, how far pairs are apart, and how long their texts are.

matplotlib is imported when a picture is drawn, and used without its global state.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from culture_tasks.pages.pictures import look
from culture_tasks.preferences.pair_rule import Pair
from culture_tasks.preferences.preference_stat import DIMENSIONS, GroupStat, PreferenceStat
from culture_tasks.report.figures.fonts import choose, warn_of_gaps
from culture_tasks.report.figures.names import cleaned, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_POINTS = 3_000
_MOST_LANGUAGES = 6
_MOST_GROUPS = 20
_MOST_BARS = 30


def questions_picture(stat: PreferenceStat) -> Figure:
    """Draws how many questions of each group have a pair, a tie, or one response."""
    shown_by = [by for by in DIMENSIONS if by != "overall"]
    groups = {by: [each for each in stat.groups if each.by == by] for by in shown_by}
    groups = {by: sorted(some, key=lambda each: -each.questions)[:_MOST_GROUPS] for by, some in groups.items()}
    figure = _figure(8.0, 1.6 + 0.3 * sum(map(len, groups.values())))
    rows = figure.subplots(len(groups), 1, sharex=True, height_ratios=[max(len(some), 1) for some in groups.values()])
    for axes, (by, some) in zip(rows, groups.items(), strict=True):
        left = np.zeros(len(some))
        for place, (label, count) in enumerate(_PARTS.items()):
            numbers = np.array([count(each) for each in some], dtype=np.float64)
            style = look(place)
            axes.barh(
                range(len(some)),
                numbers,
                left=left,
                color=style.colour,
                hatch=style.hatch,
                edgecolor="white",
                label=label,
            )
            left += numbers
        axes.set_yticks(range(len(some)), [shown(cleaned(each.group)) for each in some])
        axes.invert_yaxis()
        axes.set_title(by, loc="left", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    rows[-1].set_xlabel("questions")
    handles, labels = rows[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), frameon=False)
    return figure


_PARTS: Mapping[str, Any] = {
    "with a pair": lambda each: each.paired,
    "ties": lambda each: each.ties,
    "one response": lambda each: each.single,
    "gap too small": lambda each: each.questions - each.paired - each.ties - each.single,
}


def gaps_picture(pairs: Sequence[Pair]) -> Figure:
    """Draws how far apart the ratings of pairs are."""
    gaps = np.array([pair.gap for pair in pairs])
    figure = _figure(6.4, 3.6)
    axes = figure.add_subplot()
    if np.all(gaps == np.round(gaps)) and gaps.max() <= _MOST_BARS:
        values, counts = np.unique(gaps, return_counts=True)
        axes.bar(values, counts, width=0.8, color=look(0).colour)
    else:
        axes.hist(gaps, bins=_MOST_BARS, color=look(0).colour)
    axes.axvline(float(np.median(gaps)), color="0.25", linestyle="--", linewidth=1, label="median")
    axes.set(xlabel="difference of the ratings of a pair", ylabel="pairs")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def lengths_picture(pairs: Sequence[Pair], overall: GroupStat) -> Figure:
    """Draws the length of the chosen against the rejected response of each pair; colours are languages.

    Args:
        pairs: The pairs; of many, some are drawn at random.
        overall: The group of all questions.
    """
    from matplotlib.ticker import FuncFormatter

    order = np.random.default_rng(0).permutation(len(pairs))[:_MOST_POINTS]
    some = [pairs[place] for place in sorted(order)]
    names, counts = np.unique([pair.question.language for pair in some], return_counts=True)
    kept = [str(name) for name in names[np.argsort(-counts, kind="stable")]]
    kept = kept if len(kept) <= _MOST_LANGUAGES else kept[: _MOST_LANGUAGES - 1]
    figure = _figure(6.4, 5.4)
    axes = figure.add_subplot()
    for place, name in enumerate([*kept, "other"]):
        own = [pair for pair in some if (pair.question.language if pair.question.language in kept else "other") == name]
        if own:
            across, up = [len(pair.rejected.text) for pair in own], [len(pair.chosen.text) for pair in own]
            style = look(place)
            label = f"{shown(cleaned(name))} (n={len(own)})"
            axes.scatter(across, up, 12, style.colour, marker=style.marker, alpha=0.5, linewidths=0, label=label)
    lengths = [len(answer.text) for pair in some for answer in pair[1:]]
    ends = (min(lengths) / 1.2, max(lengths) * 1.2)
    axes.plot(ends, ends, color="0.4", linewidth=1, linestyle="--", label="equal length", zorder=0)
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlabel("length of the rejected response, characters")
    axes.set_ylabel("length of the chosen response, characters")
    drawn = f"{len(some)} of {len(pairs)} pairs,\ndrawn at random" if len(some) < len(pairs) else None
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, title=drawn)
    if overall.longer is not None:
        figure.suptitle(f"The chosen response is the longer one in {overall.longer:.0%} of the pairs", fontsize=10)
    return figure


def write_pictures(stat: PreferenceStat, folder: Path) -> list[Path]:
    """Writes the pictures as PNG and SVG, the same for the same data, and returns their paths.

    Without a pair there is only the first.
    """
    import matplotlib as mpl

    names = [cleaned(each.group) for each in stat.groups]
    fonts = choose(names)
    warn_of_gaps(names, fonts)
    settings: Any = {
        "font.family": [*fonts.families, "sans-serif"],
        "font.size": 9,
        "svg.hashsalt": "culture-tasks",
        "text.parse_math": False,
    }
    paths: list[Path] = []
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figures = {"questions": questions_picture(stat)}
        if stat.pairs:
            overall = next(each for each in stat.groups if each.by == "overall")
            figures |= {"gaps": gaps_picture(stat.pairs), "lengths": lengths_picture(stat.pairs, overall)}
        for name, figure in figures.items():
            png, svg = folder / f"{name}.png", folder / f"{name}.svg"
            figure.savefig(png, dpi=160)
            figure.savefig(svg, metadata={"Date": None})
            paths += [png, svg]
    return paths


def _figure(width: float, height: float) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure
