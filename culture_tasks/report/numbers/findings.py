"""The sentences before all tables: who is best, for which cultures, whether to trust the judge, what is missing.

A rule makes each sentence from numbers and tests of the report. No sentence claims more than its test: a difference
that isn't significant after adjustment is called so, or isn't mentioned.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from scipy import special

from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.benchmarks.reporting import Question
from culture_tasks.report.model import CheckedScore, Conclusion, Number, Phrase, Report, Standing, Unit
from culture_tasks.report.numbers.comparisons import ALPHA
from culture_tasks.report.numbers.countries import FEW
from culture_tasks.report.numbers.overall import why_no_mean
from culture_tasks.report.wording import amount, counted, interval, number, why_no_interval
from culture_tasks.results.finding import LOSSES
from culture_tasks.vocabulary import place

_LIST_LENGTH = 6
"""Most clauses of a sentence; the others are counted."""

_NAME_LIMIT = 3
"""Most models that a clause names; the others are counted."""


_MARK = "\x02"
"""A control character on either side of a name, until the sentence is whole."""


def findings(report: Report, checked: Sequence[CheckedScore], results: Sequence[str]) -> tuple[Conclusion, ...]:
    """Returns the findings of a report without any; the results are its paths."""
    units = [unit for unit in report.units.values() if unit.headline and unit.cells]
    sentences: tuple[tuple[Question, str, str], ...] = (
        ("best", _best(report, units), ""),
        ("cultures", _cultures(report), ""),
        ("judges", *_trust(report, units, checked, results)),
        ("runs", _missing(report, units), ""),
    )
    return tuple(Conclusion(question, _phrases(text), command) for question, text, command in sentences if text)


# Words


def _name(text: str) -> str:
    """Returns a name between marks, which :func:`_phrases` looks for."""
    return _MARK + text.replace(_MARK, "") + _MARK


def _phrases(text: str) -> tuple[Phrase, ...]:
    """Splits a sentence at the marks into words and names."""
    pieces = enumerate(text.split(_MARK))
    return tuple(Phrase(piece, is_name=bool(index % 2)) for index, piece in pieces if piece)


def _model(report: Report, key: str) -> str:
    return _name(report.entrants[key].label)


def _listed(names: Iterable[str]) -> str:
    """Returns names as words: "a, b and c", or "a, b, c and 2 more"."""
    parts = list(names)
    if len(parts) > _NAME_LIMIT:
        parts[_NAME_LIMIT:] = [f"{len(parts) - _NAME_LIMIT} more"]
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def _clauses(parts: Sequence[str]) -> str:
    more = [f"and {len(parts) - _LIST_LENGTH} more"] if len(parts) > _LIST_LENGTH else []
    return "; ".join([*parts[:_LIST_LENGTH], *more])


def _scores(count: int, total: int) -> str:
    return f"{count} of {total} scores {'is' if count == 1 else 'are'}"


def _value(cell: Number) -> str:
    """Returns a number with its interval, such as ``7.10, interval 6.90 to 7.30``."""
    ends = interval(cell, " to ")
    source = "corrected by people" if "corrected" in cell.flags else ""
    parts = (amount(cell.value, cell.scale), f"interval {ends}" if ends else why_no_interval(cell), source)
    return ", ".join(part for part in (*parts, *cell.remarks) if part)


# Which model is best?


def _best(report: Report, units: Sequence[Unit]) -> str:
    """Says which model is best on average; without a mean, on each benchmark."""
    rows = list(dict.fromkeys(key for unit in units for key in unit.cells))
    if mean := next((mean for mean in report.means if len(mean.cells) > 1), None):
        leaders, shared = _leaders(mean.cells), len({report.entrants[key].model for key in mean.cells})
        whose = f"that {counted(shared, 'model')} share" if shared > 1 else "of one model under several settings"
        return (
            f"{_named(report, leaders)} {'have' if len(leaders) > 1 else 'has'} the highest mean "
            f"({_value(mean.cells[leaders[0]])}) over the {len(mean.columns)} columns {whose}"
            f"{_certainty(report, leaders, mean.standing)}."
        )
    if len(rows) == 1:
        scored = [(unit, unit.cells[rows[0]]) for unit in units if unit.cells[rows[0]].value is not None]
        numbers = _clauses([f"{_name(unit.title)} {_value(cell)}" for unit, cell in scored])
        return f"{_model(report, rows[0])} was run alone: {numbers}." if numbers else ""
    models = len({report.entrants[key].model for key in rows})
    sentences = []
    if len(units) > 1 and models > 1 and not _waiting(report):
        sentences.append(f"The {models} models can't be ranked by a mean: {why_no_mean(units)}.")
    if clauses := [_first(report, unit) for unit in units if len(unit.standing.ranked) > 1]:
        sentences.append(f"{_clauses(clauses)}.")
    return " ".join(sentences)


def _first(report: Report, unit: Unit) -> str:
    """Says who is first on a benchmark."""
    leaders = _leaders({key: unit.cells[key] for key in unit.standing.ranked})
    return (
        f"{_named(report, leaders)} {'are' if len(leaders) > 1 else 'is'} first on {_name(unit.title)} "
        f"({_value(unit.cells[leaders[0]])}){_certainty(report, leaders, unit.standing)}"
    )


def _named(report: Report, keys: Iterable[str]) -> str:
    return _listed(_model(report, key) for key in keys)


def _leaders(cells: Mapping[str, Number]) -> list[str]:
    """Returns the row with the best number, or all rows that share it, in their order."""
    sign = -1.0 if any(cell.scale.better == "lower" for cell in cells.values()) else 1.0
    values = {key: sign * cell.value for key, cell in cells.items() if cell.value is not None}
    return [key for key, value in values.items() if value == max(values.values())]


def _certainty(report: Report, leaders: Sequence[str], standing: Standing) -> str:
    """Names the rows that the leader doesn't differ from significantly; empty if several rows lead."""
    if len(leaders) > 1:
        return ""
    others, rivals = ([key for key in keys if key not in leaders] for keys in (standing.ranked, standing.best))
    if not others:
        return "; there are no samples to test that with"
    if not rivals:
        return f", significantly better than {'the other' if len(others) == 1 else 'all others'}"
    named = "any other" if len(rivals) == len(others) > 1 else _named(report, rivals)
    return f", but not significantly different from {named}"


# For which cultures is it best and worst?


def _cultures(report: Report) -> str:
    """Names each model's best and worst country, among those that differ significantly from its others."""
    told: list[str] = []
    undecided: list[str] = []
    ranked = [key for mean in report.means for key in mean.standing.ranked]
    for key in dict.fromkeys((*ranked, *report.entrants)):
        scores = [score for score in report.countries if score.entrant == key]
        scores.sort(key=lambda score: score.cell.value or 0.0)
        above, below = ([score for score in scores if score.beside_others == side] for side in ("above", "below"))
        sides = [
            f"{word} for {_name(place(score.place).name)} ({score.cell.value:.0f})"
            for word, ends in (("best", above[-1:]), ("worst", below[:1]))
            for score in ends
        ]
        if sides:
            told.append(f"{_model(report, key)} is {' and '.join(sides)}")
        elif scores:
            undecided.append(key)
    rule = "Each differs significantly from the model's other countries."
    sentences = [f"On a scale of 0-100, {_clauses(told)}. {rule}"] if told else []
    sentences += [f"No country stands out for {_named(report, undecided)}."] if undecided else []
    return " ".join(sentences)


# Can the judge be trusted?


def _waiting(report: Report) -> int:
    """Returns the number of responses that were recorded for a judge and not graded."""
    return sum(run.unjudged for run in report.runs.values())


def _trust(
    report: Report, units: Sequence[Unit], checked: Sequence[CheckedScore], results: Sequence[str]
) -> tuple[str, str]:
    """Says who graded and whether people have checked it, and gives a command that helps, which may be empty."""
    paths = shlex.join(results) if len(results) <= _NAME_LIMIT else "RESULTS"
    cells = [(unit, key, cell) for unit in units for key, cell in unit.cells.items()]
    if waiting := _waiting(report):
        lacking = [unit for unit, _, cell in cells if "unjudged" in cell.flags]
        verb = "is" if waiting == 1 else "are"
        return f"{counted(waiting, 'response')} {verb} recorded and not graded:", _rejudge(paths, lacking)
    cells = [(unit, key, cell) for unit, key, cell in cells if cell.value is not None]
    judges = [_judges(report, cell) for *_, cell in cells]
    names = list(dict.fromkeys(name for labels in judges for name in labels))
    overlap = [unit for unit, _, cell in cells if "lexical_judge" in cell.flags]
    unnamed = sum("from_result_file" in cell.flags and bool(_judge_of_paper(unit)) for unit, _, cell in cells)
    own = dict.fromkeys(key for _, key, cell in cells if "self_judged" in cell.flags)
    clauses = {
        f"{_listed(map(_name, names))} graded {sum(map(bool, judges))} of {len(cells)} scores": names,
        f"{_scores(len(overlap), len(cells))} by text overlap, not by a judge": overlap,
        f"{_scores(unnamed, len(cells))} from files that don't name the judge": unnamed,
        f"the judge of {_named(report, own)} is the model itself or of its family, which judges tend to favour": own,
    }
    text = _clauses([clause for clause, is_so in clauses.items() if is_so])
    if not text:
        by_rule = "No judge graded: every score follows from the replies by a fixed rule."
        return by_rule if cells and all(unit.benchmark for unit in units) else "", ""
    if people := _checked_by_people(report, checked):
        return f"{text}. {people}", ""
    if overlap:
        return f"{text}. A judge grades the same responses:", _rejudge(paths, overlap)
    if not names:
        return f"{text}.", ""
    command = f"culture-tasks spotcheck draw {paths} -n 100 -o sheet"
    return f"{text}; people haven't rated any of these responses. This draws some for them:", command


def _judges(report: Report, cell: Number) -> list[str]:
    """Returns the judges that graded a number; none where text overlap did."""
    runs = [] if "lexical_judge" in cell.flags else [report.runs[key] for key in cell.runs]
    return [judge.label for run in runs for judge in run.settings.judges if judge.backend != "none"]


def _judge_of_paper(unit: Unit) -> str:
    benchmark = benchmarks().get(unit.benchmark or "")
    return next((rubric.model for rubric in benchmark.rubrics()), "") if benchmark is not None else ""


def _rejudge(paths: str, units: Sequence[Unit]) -> str:
    """Returns the command that has the responses of some units graded by the judge of their paper."""
    model = next(filter(None, map(_judge_of_paper, units)), "MODEL")
    return f"culture-tasks rejudge {paths} --judge openai:{model}"


def _checked_by_people(report: Report, checked: Sequence[CheckedScore]) -> str:
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
    value = f"{number(people.value, people.scale)} ({interval(people, ' to ')})"
    return (
        f"People contradict the judge: by their ratings, {_model(report, worst.entrant)} is at {value} on "
        f"{_name(report.units[worst.unit].title)}, and not at {number(judge.value, judge.scale)}."
    )


# What is missing?


def _missing(report: Report, units: Sequence[Unit]) -> str:
    """Counts missing runs, incomparable scores with their reasons, lost files, and countries with few questions."""
    cells = [(unit, key, cell) for unit in units for key, cell in unit.cells.items()]
    limited = sum("limited" in cell.flags for *_, cell in cells)
    not_run = sum(len(report.models - {report.entrants[key].model for key in unit.cells}) for unit in units)
    reasons = Counter(unit.standing.left_out[key] for unit, key, _ in cells if key in unit.standing.left_out)
    listed = ", ".join(f"{reason} ({count})" for reason, count in reasons.most_common())
    unread = len({problem.path for problem in report.problems if problem.kind in LOSSES})
    few, countries = (
        len({score.place for score in report.countries if score.cell.n < most}) for most in (FEW, math.inf)
    )
    clauses = {
        f"a part of the items of {limited} of {len(cells)} scores": limited,
        f"no run for {not_run} of {len(report.models) * len(units)} pairs of model and benchmark": not_run,
        f"{_scores(reasons.total(), len(cells))} neither ranked nor tested: {listed}": reasons,
        f"{counted(unread, 'file')} couldn't be read in whole": unread,
        f"fewer than {FEW} questions about {few} of {countries} countries": few,
    }
    missing = _clauses([text for text, count in clauses.items() if count])
    return f"Missing: {missing}." if missing else ""
