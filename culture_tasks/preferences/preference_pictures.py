"""Three pictures of rated responses: questions of each group, how far pairs are apart, and how long their texts are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from culture_tasks.pages.pictures import cleaned, look, save, shown, styled
from culture_tasks.preferences.pairs import PreferencePair
from culture_tasks.preferences.preference_stat import DIMENSIONS, GroupStat, PreferenceStat

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_POINTS = 3_000
_MOST_GROUPS = 20
_MOST_BARS = 30

_PARTS: Mapping[str, Any] = {
    "with a pair": lambda group: group.paired,
    "ties": lambda group: group.ties,
    "one response": lambda group: group.single,
    "gap too small": lambda group: group.questions - group.paired - group.ties - group.single,
}


def questions_picture(stat: PreferenceStat) -> Figure:
    """Draws how many questions of each group have a pair, a tie, or one response."""
    largest = sorted(stat.groups, key=lambda group: -group.questions)
    groups = {
        dimension: [group for group in largest if group.by == dimension][:_MOST_GROUPS]
        for dimension in DIMENSIONS
        if dimension != "overall"
    }
    figure = _figure(8.0, 1.6 + 0.3 * sum(map(len, groups.values())))
    rows = figure.subplots(len(groups), 1, sharex=True, height_ratios=[max(len(bars), 1) for bars in groups.values()])
    for axes, (dimension, bars) in zip(rows, groups.items(), strict=True):
        starts = np.zeros(len(bars))
        for place, (label, count) in enumerate(_PARTS.items()):
            numbers, style = np.array([count(group) for group in bars], dtype=np.float64), look(place)
            fill: dict[str, Any] = {"color": style.colour, "hatch": style.hatch, "edgecolor": "white"}
            axes.barh(range(len(bars)), numbers, left=starts, label=label, **fill)
            starts += numbers
        axes.set_yticks(range(len(bars)), [shown(cleaned(group.group)) for group in bars])
        axes.invert_yaxis()
        axes.set_title(dimension, loc="left", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    rows[-1].set_xlabel("questions")
    handles, labels = rows[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), frameon=False)
    return figure


def gaps_picture(pairs: Sequence[PreferencePair]) -> Figure:
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


def lengths_picture(pairs: Sequence[PreferencePair], overall: GroupStat) -> Figure:
    """Draws the length of the chosen against the rejected response, of many pairs some; colours are languages."""
    order = np.random.default_rng(0).permutation(len(pairs))[:_MOST_POINTS]
    sample = [pairs[place] for place in sorted(order)]
    names, counts = np.unique([pair.question.language for pair in sample], return_counts=True)
    figure = _figure(6.4, 5.4)
    axes = figure.add_subplot()
    for place, name in enumerate(names[np.argsort(-counts, kind="stable")]):
        points = [pair for pair in sample if pair.question.language == name]
        across, up = [len(pair.rejected.text) for pair in points], [len(pair.chosen.text) for pair in points]
        style, label = look(place), f"{shown(cleaned(str(name)))} (n={len(points)})"
        axes.scatter(across, up, 12, style.colour, marker=style.marker, alpha=0.5, linewidths=0, label=label)
    lengths = [len(answer.text) for pair in sample for answer in pair[1:]]
    ends = (min(lengths) / 1.2, max(lengths) * 1.2)
    axes.plot(ends, ends, color="0.4", linewidth=1, linestyle="--", label="equal length", zorder=0)
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("length of the rejected response, characters")
    axes.set_ylabel("length of the chosen response, characters")
    title = f"{len(sample)} of {len(pairs)} pairs,\ndrawn at random" if len(sample) < len(pairs) else None
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, title=title)
    if overall.longer is not None:
        figure.suptitle(f"The chosen response is the longer one in {overall.longer:.0%} of the pairs", fontsize=10)
    return figure


def write_pictures(stat: PreferenceStat, folder: Path) -> list[Path]:
    """Writes the pictures as PNG and SVG and returns their paths; without a pair there is only the first."""
    with styled(cleaned(group.group) for group in stat.groups):
        figures = {"questions": questions_picture(stat)}
        if stat.pairs:
            overall = next(group for group in stat.groups if group.by == "overall")
            figures |= {"gaps": gaps_picture(stat.pairs), "lengths": lengths_picture(stat.pairs, overall)}
        return [path for name, figure in figures.items() for path in save(figure, folder / name)]


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")
