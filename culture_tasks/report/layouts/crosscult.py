"""CrossCult-KIBench: the roles of single insertion (Table 2) and of sequential insertion (Table 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from culture_tasks.benchmarks.crosscult.vocabulary import SEQUENTIAL_ROLES, SINGLE_ROLES
from culture_tasks.report.benchmarks import PERCENT
from culture_tasks.report.layouts.grid import CellOf, Context, Place, cell_in, grid, judge_of
from culture_tasks.report.model import Cell, Column, Flag, Table
from culture_tasks.report.numbers import Where, cell_of
from culture_tasks.report.units import Measured

_JUDGES: frozenset[Flag] = frozenset(("lexical_judge", "other_judge", "other_judge_prompt"))
_LABELS = {
    "crosscult_single": {
        "reliability": "Reliability",
        "generality": "Generality",
        "cross_language_locality": "Cross-Lang. Loc.",
        "cross_scenario_locality": "Cross-Scen. Loc.",
    },
    "crosscult_sequential": {"reliability": "Final Rel.", "generality": "Final Gen.", "locality": "Final Loc."},
}
_ROLES = {"crosscult_single": SINGLE_ROLES, "crosscult_sequential": SEQUENTIAL_ROLES}
_NUMBER = {"crosscult_single": 2, "crosscult_sequential": 3}


def tables(context: Context, measured: Measured) -> Iterator[Table]:
    """Yields the paper's table of a setting; other settings have none."""
    key = measured.unit.key
    if key not in _ROLES:
        return
    paper = f"crosscult_table_{_NUMBER[key]}"
    places = [place for role in _ROLES[key] for place in _places(measured, role, paper)]
    places += _overall(measured, paper)
    title = f"{key}: ROUGE-L in percent and the judge's score from 0 to 10"
    note = "Overall: the mean over the roles, each weighing the same."
    table = Table(
        paper,
        title,
        ("Base model", "Method", "Judge"),
        (),
        (),
        f"CrossCult-KIBench, Table {_NUMBER[key]}",
        "crosscult",
        (note,),
    )
    yield grid(context, table, places, measured.unit.cells, with_method(context, measured))


def _places(measured: Measured, role: str, paper: str) -> Iterator[Place]:
    where = (("role", role),)
    over = _LABELS[measured.unit.key][role]
    yield _place(measured, role, "rouge_l", over, overlap_in(measured, where), paper)
    yield _place(measured, role, "judge_score", over, cell_in(measured, where), paper)


def _overall(measured: Measured, paper: str) -> Iterator[Place]:
    yield _place(measured, "overall", "rouge_l", "Overall", overlap_in(measured, ()), paper)
    yield _place(measured, "overall", "judge_score", "Overall", measured.unit.cells.get, paper)


def _place(measured: Measured, role: str, score: str, over: str, cell: CellOf, paper: str) -> Place:
    scale = PERCENT if score == "rouge_l" else measured.unit.scale
    column = Column(f"{role}_{score}", "ROUGE-L" if score == "rouge_l" else "LLM Judge", scale, over)
    setting = measured.unit.key.removeprefix("crosscult_")
    return Place(column, cell, {"setting": setting, "role": role, "score": score}, (paper,))


def overlap_in(measured: Measured, where: Where) -> CellOf:
    """Returns what gives an entrant's ROUGE-L in some groups; without any, over all tasks with equal weight."""

    def cell(entrant: str) -> Cell | None:
        if entrant not in measured.runs:
            return None
        observed = measured.observe(entrant, where, extra=True)
        flags = set(measured.flags[entrant])
        if not where:
            flags |= {flag for flag in measured.unit.cells[entrant].flags if flag == "incomplete"}
        return cell_of(observed, PERCENT, tuple(flags - _JUDGES - {"unjudged"}), where)

    return cell


def with_method(context: Context, measured: Measured) -> Callable[[str], tuple[str, ...]]:
    """Returns labels of three texts: the base model, what inserts knowledge into it, and who graded."""

    def labels(entrant: str) -> tuple[str, ...]:
        runs = [context.runs[key] for key in measured.unit.cells[entrant].runs]
        methods = (part.partition("=")[2] for part in runs[0].model_args.split(", ") if part.startswith("method="))
        method = next(methods, "") if runs else ""
        label = context.entrants[entrant].label
        base = label.replace(f" + {method}", "", 1) if method else label
        return (base, "Base Model" if method in ("", "base") else method, judge_of(context, measured, entrant))

    return labels
