"""Sentences about the numbers: who is best, for which cultures, whether to trust it, what is missing, biases, changes.

A rule makes each sentence from numbers and tests of the report. No sentence claims more than its test: a difference
that isn't significant after adjustment is called so, or isn't mentioned.
"""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress

from scipy import special

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.benchmarks.reporting import Question
from culture_tasks.metrics.significance import holm, p_of_intervals
from culture_tasks.report.model import (
    CheckedScore,
    Conclusion,
    Contrast,
    CountryScore,
    Gain,
    JudgeBias,
    Number,
    Phrase,
    Report,
    Unit,
)
from culture_tasks.report.numbers.comparisons import ALPHA
from culture_tasks.report.numbers.countries import FEW
from culture_tasks.report.numbers.gains import OVER_ALL
from culture_tasks.report.numbers.numbers import report_of
from culture_tasks.report.numbers.overall import why_no_mean
from culture_tasks.report.numbers.selection import SCORE
from culture_tasks.report.wording import amount, counted, interval, number, why_no_interval
from culture_tasks.results.finding import LOSSES
from culture_tasks.vocabulary import place

_LIST_LENGTH = 6
"""Most benchmarks that a sentence lists."""

_NAME_LIMIT = 3
"""Most models or columns that a sentence names; the others are counted."""

_LARGE_BIAS = 0.1
"""A judge's bias over the observed range of a probe must exceed this share of the scale's width for a sentence."""

_FEWEST_ITEMS = 10
"""Fewest items behind a number that a sentence about biases or differences names: fewer are no sample."""

_ONE_CHOICE = 0.95
"""Share of a task's choices from which on they are called one and the same."""


def findings(
    report: Report, checked: Sequence[CheckedScore], biases: Sequence[JudgeBias], results: Sequence[str]
) -> tuple[Conclusion, ...]:
    """Returns the findings of a report without any, those before all tables first; the results are its paths."""
    writer = _Writer(report, [unit for unit in report.units.values() if unit.headline and unit.cells])
    leaders = writer.best()
    trust, command = writer.trust(checked, results)
    ungraded, rejudge = writer.ungraded(results)
    sentences = (
        _finding("judges", ungraded, first=True, command=rejudge),
        _finding("best", leaders, first=True),
        _finding("cultures", writer.cultures(), first=True),
        _finding("judges", trust, first=True, command=command),
        _finding("judges", writer.self_graded(), first=True),
        _finding("judges", _swayed(biases), first=True),
        _finding("runs", writer.missing(), first=True),
        *(
            _finding("best", text)
            for certain in (True, False)
            if (text := writer.column_leaders(certain)) not in leaders
        ),
        _finding("biases", writer.one_choice(), first=True),
        _finding("biases", writer.strongest_bias()),
        _finding("changes", writer.greatest_change()),
        _finding("changes", writer.after_training()),
    )
    return tuple(sentence for sentence in sentences if sentence is not None)


_MARKS = re.compile("[\x02\x03]")
"""The marks around a name within a sentence."""


def _name(text: str) -> str:
    """Marks a text as a name, which comes from models or data."""
    return f"\x02{_MARKS.sub('', text)}\x03"


def _finding(question: Question, text: str, *, first: bool = False, command: str = "") -> Conclusion | None:
    phrases = tuple(Phrase(piece, bool(place % 2)) for place, piece in enumerate(_MARKS.split(text)) if piece)
    return Conclusion(question, phrases, first, command) if phrases else None


def _listed(names: Sequence[str], noun: str) -> str:
    """Returns names as words: "a, b and c", or "a, b, c and 2 more models"."""
    parts = list(names[:_NAME_LIMIT])
    if len(names) > _NAME_LIMIT:
        parts.append(counted(len(names) - _NAME_LIMIT, f"more {noun}"))
    return " and ".join(text for text in (", ".join(parts[:-1]), *parts[-1:]) if text)


def _spaced(items: Sequence[str]) -> str:
    """Returns items with semicolons between them, since items contain commas."""
    more = [f"and {len(items) - _LIST_LENGTH} more"] if len(items) > _LIST_LENGTH else []
    return "; ".join([*items[:_LIST_LENGTH], *more])


def _paths(results: Sequence[str]) -> str:
    return shlex.join(results) if len(results) <= _NAME_LIMIT else "RESULTS"


def _rejudge(paths: str, units: Sequence[Unit]) -> str:
    """Returns the command that has the responses of some units graded by the judge of their paper."""
    graded = [benchmarks().get(unit.benchmark or "") for unit in units]
    model = next((rubric.model for benchmark in graded if benchmark for rubric in benchmark.rubrics()), "MODEL")
    return f"culture-tasks rejudge {paths} --judge openai:{model}"


def _scores(count: int, total: int) -> str:
    """Returns ``1 of 9 scores is``."""
    return f"{count} of {total} scores {'is' if count == 1 else 'are'}"


def _value(cell: Number, *, signed: bool = False) -> str:
    """Returns a number with its interval, such as ``7.10, 6.90 to 7.30``."""
    ends = interval(cell, " to ", signed=signed)
    ends, source = (
        f"interval {ends}" if ends else why_no_interval(cell),
        "corrected by people" if "corrected" in cell.flags else "",
    )
    parts = (amount(cell.value, cell.scale, signed=signed), ends, source, *cell.remarks)
    return ", ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes each sentence, or an empty text. Headline units are those of the summary."""

    report: Report
    headline: Sequence[Unit]

    def model(self, key: str) -> str:
        return _name(self.report.entrants[key].label)

    def unit(self, key: str) -> str:
        return _name(self.report.units[key].title)

    def group(self, unit: str, dimension: str, group: str) -> str:
        """Returns the name of a group as its benchmark writes it."""
        return report_of(self.report.units[unit].benchmark).field_named(dimension).name_of(group)

    def models(self, keys: Iterable[str]) -> str:
        """Returns the names of several models in words."""
        return _listed([self.model(key) for key in keys], "model")

    def number_of_models(self, keys: Iterable[str]) -> int:
        """Returns the number of models of these entrants: a model may have several settings."""
        return len({self.report.entrants[key].model for key in keys})

    # Who is best?

    def best(self) -> str:
        """Says who is best on average; without an average, who leads the columns."""
        mean = next((mean for mean in self.report.means if len(mean.cells) > 1), None)
        if mean is None:
            leaders = self.column_leaders(certain=True) or self.column_leaders(certain=False)
            return " ".join(filter(None, (self._without_mean(), leaders)))
        leader = max(mean.cells, key=lambda key: mean.cells[key].value or 0.0)
        rivals, standing = [key for key in mean.standing.best if key != leader], mean.standing
        if not standing.ranked:
            certainty = "; there are no samples to test that with"
        elif not rivals:
            certainty = f", significantly above {'the other' if len(mean.cells) == 2 else 'all others'}"
        elif len(rivals) == len(standing.ranked) - 1:
            certainty = ", but is not significantly different from any other"
        else:
            certainty = f", but is not significantly different from {self.models(rivals)}"
        models = self.number_of_models(mean.cells)
        shared = f"that {counted(models, 'model')} share" if models > 1 else "of the same model under several settings"
        return (
            f"{self.model(leader)} has the highest mean ({_value(mean.cells[leader])}) over the {len(mean.columns)} "
            f"columns {shared}{certainty}."
        )

    def _without_mean(self) -> str:
        """Returns the scores of a single model, or says that no two models share two columns."""
        models = list(dict.fromkeys(key for unit in self.headline for key in unit.cells))
        if len(models) == 1:
            [key] = models
            scored = [unit for unit in self.headline if unit.cells[key].value is not None]
            numbers = [f"{self.unit(unit.key)} {_value(unit.cells[key])}" for unit in scored]
            return f"{self.model(key)} was run alone: {_spaced(numbers)}." if numbers else ""
        if len(self.headline) < 2 or self.number_of_models(models) < 2 or self._waiting:
            return ""
        reason = why_no_mean(self.headline, self.report.entrants)
        return f"The {self.number_of_models(models)} models can't be ranked by a mean: {reason}."

    def column_leaders(self, certain: bool) -> str:
        """Says who leads the columns with a certain winner, or the others."""
        ranked = [unit for unit in self.headline if len(unit.standing.ranked) > 1]
        units = [unit for unit in ranked if (len(unit.standing.best) == 1) == certain]
        if not units:
            return ""
        if not certain:
            return f"No clear winner: {_spaced([self._without_winner(unit) for unit in units])}."
        leaders: dict[str, list[str]] = {}
        for unit in units:
            leader = unit.standing.ranked[0]
            leaders.setdefault(leader, []).append(f"{self.unit(unit.key)} ({_value(unit.cells[leader])})")
        if len(leaders) == 1 and len(units) == len(ranked) > 2:
            return f"{self.model(next(iter(leaders)))} is significantly best on all {len(units)} benchmarks."
        by_leader = [f"{self.model(leader)} on {_listed(columns, 'benchmark')}" for leader, columns in leaders.items()]
        return f"Significantly best: {_spaced(by_leader)}."

    def _without_winner(self, unit: Unit) -> str:
        leader = unit.standing.ranked[0]
        rivals = self.models(key for key in unit.standing.best if key != leader)
        score = _value(unit.cells[leader])
        return f"on {self.unit(unit.key)}, {self.model(leader)} ({score}) and {rivals} are not significantly different"

    # For which cultures is it best and worst?

    def cultures(self) -> str:
        """Names each model's best and worst country, among those that differ significantly from its others."""
        if not self.report.countries:
            return ""
        leaders = {key: None for mean in self.report.means for key in mean.standing.ranked}
        by_entrant: dict[str, list[CountryScore]] = {key: [] for key in (*leaders, *self.report.entrants)}
        for score in self.report.countries:
            by_entrant[score.entrant].append(score)
        sentences: list[str] = []
        undecided: list[str] = []
        for key, scores in by_entrant.items():
            ordered = sorted(scores, key=lambda score: score.cell.value or 0.0)
            best, worst = ([score for score in ordered if score.beside_others == side] for side in ("above", "below"))
            sides = [f"best for {self._country(best[-1])}"] if best else []
            sides += [f"worst for {self._country(worst[0])}"] if worst else []
            if sides:
                sentences.append(f"{self.model(key)} is {' and '.join(sides)}")
            elif scores:
                undecided.append(key)
        if not sentences:
            return "No country stands out: for no model is one significantly above or below its other countries."
        others = f" No country stands out for {self.models(undecided)}." if undecided else ""
        return (
            f"On a scale of 0-100, {_spaced(sentences)}. Each differs significantly from the model's other "
            f"countries.{others}"
        )

    def _country(self, score: CountryScore) -> str:
        return f"{_name(place(score.place).name)} ({score.cell.value:.0f})"

    # What biases are there?

    def one_choice(self) -> str:
        """Names the models that choose the same label in nearly all their replies to a task."""
        pieces: dict[str, None] = {}
        for unit in self.report.units.values():
            for key, cell in unit.cells.items():
                for run in (self.report.runs[name] for name in cell.runs):
                    label, count, choices = self.report.samples.main_choice(run.key)
                    if choices >= _FEWEST_ITEMS and count >= _ONE_CHOICE * choices and not run.settings.judges:
                        label = _name(self.group(unit.key, "label", label))
                        share = "every question" if count == choices else f"{count:,} of {choices:,} questions"
                        pieces[f"{self.model(key)} answers {label} to {share} of {_name(run.task)}"] = None
        return f"{_spaced(list(pieces))}." if pieces else ""

    def strongest_bias(self) -> str:
        """Names the number that is furthest from neutral, among those that are significantly off it."""
        biased = [
            value
            for value in self.report.groups
            if value.statistic != SCORE
            and value.scale.neutral is not None
            and value.comparable
            and value.n >= _FEWEST_ITEMS
        ]
        certain = list(compress(biased, _certain(biased)))
        if not certain:
            return ""
        strongest = max(certain, key=lambda value: _strength(value))
        scale, unit = strongest.scale, strongest.unit
        fixed = [self.group(unit, *pair) for pair in strongest.where if pair[0] != strongest.dimension]
        group = self.group(unit, strongest.dimension, strongest.group) + (f" ({', '.join(fixed)})" if fixed else "")
        return (
            f"The strongest bias: {self.model(strongest.row)} has {strongest.statistic.upper().replace('_', '-')} "
            f"{_value(strongest)} for {_name(group)} on {self.unit(unit)}, where "
            f"{number(scale.neutral, Scale(scale.unit, digits=0))} is neutral."
        )

    # What makes a difference?

    def greatest_change(self) -> str:
        """Names the greatest certain difference between two numbers that a paper sets side by side."""
        scored = [
            contrast
            for contrast in self.report.contrasts
            if contrast.statistic == SCORE and contrast.difference.n >= _FEWEST_ITEMS
        ]
        certain = list(compress(scored, _certain([contrast.difference for contrast in scored])))
        if not certain:
            return ""

        def share_of_scale(contrast: Contrast) -> float:
            low, high = contrast.second.scale.ends or (0.0, 1.0)
            return abs(contrast.difference.value or 0.0) / (high - low)

        greatest = max(certain, key=share_of_scale)
        contrasts = report_of(self.report.units[greatest.unit].benchmark).contrasts
        first, second = next(contrast.words for contrast in contrasts if contrast.kind == greatest.kind)
        group = self.group(greatest.unit, greatest.dimension, greatest.group)
        change, scale = greatest.difference.value or 0.0, greatest.difference.scale
        ends = sorted(abs(end) for end in (greatest.difference.low, greatest.difference.high) if end is not None)
        return (
            f"The greatest difference: {self.model(greatest.entrant)} is {amount(abs(change), scale)} "
            f"{'higher' if change > 0 else 'lower'} ({' to '.join(number(end, scale) for end in ends)}) {second} than "
            f"{first} on {self.unit(greatest.unit)} for {_name(group)}."
        )

    def after_training(self) -> str:
        """Says on which benchmarks each trained model is significantly better or worse than its base."""
        models: dict[tuple[str, str], list[Gain]] = {}
        for gain in self.report.gains:
            if gain.table == OVER_ALL and gain.test is not None and gain.trained.cell.scale.better is not None:
                models.setdefault((gain.trained.label, gain.base.label), []).append(gain)
        sentences = [
            f"{_name(trained)}, trained from {_name(base)}, is {self._beside_its_base(gains)}"
            for (trained, base), gains in models.items()
        ]
        return f"{_spaced(sentences)}." if sentences else ""

    def _beside_its_base(self, gains: Sequence[Gain]) -> str:
        units: dict[str, list[str]] = {"better": [], "worse": [], "open": []}
        for gain in gains:
            winner = gain.test.better if gain.test is not None else None
            outcome = "open" if not winner else "better" if winner in gain.trained.entrants else "worse"
            units[outcome].append(f"{self.unit(gain.unit)} ({_value(gain.difference, signed=True)})")
        pieces = [
            f"significantly {word} on {_listed(units[word], 'benchmark')}"
            for word in ("better", "worse")
            if units[word]
        ]
        if units["open"]:
            pieces.append(f"not significantly different from it on {counted(len(units['open']), 'benchmark')}")
        return _listed(pieces, "")

    # Can the judge be trusted?

    @property
    def _waiting(self) -> int:
        """Number of responses that were recorded for a judge and not graded."""
        return sum(run.unjudged for run in self.report.runs.values())

    def ungraded(self, results: Sequence[str]) -> tuple[str, str]:
        """Counts the responses that no judge has graded yet, and gives the command that has them graded."""
        if not (waiting := self._waiting):
            return "", ""
        units = [unit for unit in self.headline if any("unjudged" in cell.flags for cell in unit.cells.values())]
        verb = "is" if waiting == 1 else "are"
        return f"{counted(waiting, 'response')} {verb} recorded and not graded:", _rejudge(_paths(results), units)

    def trust(self, checked: Sequence[CheckedScore], results: Sequence[str]) -> tuple[str, str]:
        """Says who graded and whether people have checked it, and gives a command that helps, which may be empty."""
        cells = [cell for unit in self.headline for cell in unit.cells.values() if cell.value is not None]
        judges = [self._judges(cell) for cell in cells]
        names = [_name(name) for name in dict.fromkeys(name for labels in judges for name in labels)]
        overlap = [unit for unit in self.headline if any("lexical_judge" in cell.flags for cell in unit.cells.values())]
        paths = _paths(results)
        clauses = [f"{_listed(names, 'judge')} graded {sum(map(bool, judges))} of {len(cells)} scores"] if names else []
        judged = [
            cell for unit in self.headline if _is_judged(unit) for cell in unit.cells.values() if cell.value is not None
        ]
        own = sum(
            cell.value is not None for unit in self.headline if not unit.benchmark for cell in unit.cells.values()
        )
        clauses += [
            f"{_scores(count, len(cells))} {verdict}"
            for count, verdict in (
                (sum("lexical_judge" in cell.flags for cell in cells), "by text overlap, not by a judge"),
                (sum("from_result_file" in cell.flags for cell in judged), "from files that don't say who graded"),
                (own, "of the harness's own tasks"),
            )
            if count
        ]
        text = "; ".join(clauses)
        if not clauses:
            by_rule = "No judge graded: every score follows from the replies by a fixed rule."
            return (by_rule if cells and not self._waiting else ""), ""
        if people := self._checked_by_people(checked):
            return f"{text}. {people}", ""
        if overlap:
            return f"{text}. A judge grades the same responses:", _rejudge(paths, overlap)
        if not names:
            return f"{text}.", ""
        text += "; people haven't rated any of these responses. This draws some for them:"
        return text, f"culture-tasks spotcheck draw {paths} -n 100 -o sheet"

    def _judges(self, cell: Number) -> list[str]:
        """Returns the judges that graded a number; none where text overlap did."""
        runs = [] if "lexical_judge" in cell.flags else [self.report.runs[key] for key in cell.runs]
        return [judge.label for run in runs for judge in run.settings.judges if judge.backend != "none"]

    def _checked_by_people(self, checked: Sequence[CheckedScore]) -> str:
        """Says whether people's ratings contradict the judge's scores of the same questions."""
        scores = [score for score in checked if score.judge.value is not None and score.people.low is not None]
        if not scores:
            return ""
        # The intervals are made wider for the number of scores (Bonferroni).
        wider = float(special.ndtri(1.0 - ALPHA / 2.0 / len(scores)) / special.ndtri(0.975))
        worst = max(scores, key=lambda score: score.times_its_interval)
        if worst.times_its_interval <= wider:
            target = "the judge's score" if len(scores) == 1 else f"any of the judge's {len(scores)} scores"
            return f"People's ratings of a random part of the responses don't contradict {target}."
        people, judge = worst.people, worst.judge
        return (
            f"People contradict the judge: by their ratings, {self.model(worst.entrant)} is at "
            f"{number(people.value, people.scale)} ({interval(people, ' to ')}) on {self.unit(worst.unit)}, and not at "
            f"{number(judge.value, judge.scale)}."
        )

    def self_graded(self) -> str:
        """Names the models that graded their own responses, or those of their own family."""
        graded: Counter[tuple[str, str]] = Counter()  # by model and judge, which is empty where it is the model
        for unit in self.headline:
            for key, cell in unit.cells.items():
                if cell.value is None:
                    continue
                if "self_judged" in cell.flags:
                    graded[self.model(key), ""] += 1
                elif "own_family_judged" in cell.flags:
                    graded.update((self.model(key), _name(judge)) for judge in dict.fromkeys(self._judges(cell)))
        pieces = [
            f"{judge}, a model of the same family, graded {model} in {counted(count, 'score')}"
            if judge
            else f"{model} graded itself in {counted(count, 'score')}"
            for (model, judge), count in graded.items()
        ]
        return f"Judges tend to favour their own: {_spaced(pieces)}." if pieces else ""

    # What is missing?

    def missing(self) -> str:
        """Counts missing runs, incomparable scores with their reasons, lost files, and countries with few questions."""
        models = self.report.models
        models_run = [{self.report.entrants[key].model for key in unit.cells} for unit in self.headline]
        not_run = sum(len(models - names) for names in models_run)
        cells = sum(len(unit.cells) for unit in self.headline)
        reasons = Counter(
            reason for unit in self.headline for key, reason in unit.standing.left_out.items() if key in unit.cells
        )
        counts = ", ".join(f"{reason} ({count})" for reason, count in reasons.most_common())
        unread = len({problem.path for problem in self.report.problems if problem.kind in LOSSES})
        few = len({score.place for score in self.report.countries if score.cell.n < FEW})
        countries = len({score.place for score in self.report.countries})
        limited = [
            f"{self.unit(unit.key)}, {cell.remarks[0]}"
            for unit in self.headline
            for cell in unit.cells.values()
            if "limited" in cell.flags and cell.remarks
        ]
        pieces = (
            f"a part of the items of {len(limited)} of {cells} scores ({_spaced(list(dict.fromkeys(limited)))})"
            if limited
            else "",
            f"no run for {not_run} of {len(models) * len(models_run)} pairs of model and benchmark" if not_run else "",
            f"{_scores(reasons.total(), cells)} neither ranked nor tested: {counts}" if reasons else "",
            f"{counted(unread, 'file')} couldn't be read in whole" if unread else "",
            f"fewer than {FEW} questions about {few} of {countries} countries" if few else "",
        )
        return f"Missing: {'; '.join(filter(None, pieces))}." if any(pieces) else ""


def _is_judged(unit: Unit) -> bool:
    """Whether a judge gives the score of a unit."""
    benchmark = benchmarks().get(unit.benchmark or "")
    return benchmark is not None and bool(benchmark.rubrics())


def _swayed(biases: Sequence[JudgeBias]) -> str:
    """Names the biases of judges: significant effects of over a tenth of the scale, the largest first."""
    large = [bias for bias in biases if bias.p <= ALPHA and bias.share > _LARGE_BIAS]
    pieces = [
        f"{_name(bias.judge)} {'favours' if (bias.effect.value or 0.0) > 0.0 else 'marks down'} {bias.responses} on "
        f"{_name(bias.benchmark)} ({_value(bias.effect, signed=True)}{bias.per})"
        for bias in sorted(large, key=lambda bias: -bias.share)
    ]
    return f"Compared with people's ratings, {_spaced(pieces)}." if pieces else ""


def _certain(cells: Sequence[Number]) -> list[bool]:
    """Returns which numbers are significantly off neutral, by their intervals, after Holm's adjustment over all."""
    p = p_of_intervals(
        [math.nan if cell.value is None else cell.value - (cell.scale.neutral or 0.0) for cell in cells],
        [math.nan if cell.low is None or cell.high is None else cell.high - cell.low for cell in cells],
    )
    return [bool(adjusted < ALPHA) for adjusted in holm(p)]


def _strength(cell: Number) -> float:
    """Returns how far a number is from neutral: ratios by their logarithm, others by their share of the range."""
    value, neutral = cell.value or 0.0, cell.scale.neutral or 0.0
    return abs(math.log(max(value, 1e-3) / neutral)) if neutral > 0 else abs(value - neutral) / 100.0
