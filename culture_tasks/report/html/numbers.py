"""Numbers and flags of cells, as words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culture_tasks.report.model import NOT_COMPARABLE

if TYPE_CHECKING:
    from culture_tasks.benchmarks.interface import Scale
    from culture_tasks.report.model import Cell, Flag

NO_NUMBER = "–"


def number(value: float | None, scale: Scale) -> str:
    """Returns a number with the digits of its scale, or a dash."""
    return NO_NUMBER if value is None else f"{value:.{scale.digits}f}"


def interval(cell: Cell) -> str | None:
    """Returns both ends of an interval, or None without one."""
    if cell.low is None or cell.high is None:
        return None
    return f"{number(cell.low, cell.scale)} to {number(cell.high, cell.scale)}"


def short_name(flag: str) -> str:
    """Returns a flag, or a kind of problem, in two or three words."""
    return flag.replace("_", " ")


def flag_words(flags: tuple[Flag, ...]) -> list[str]:
    """Returns what a reader must know of a cell, the reasons not to compare it first and as one."""
    reasons = [short_name(flag) for flag in flags if flag in NOT_COMPARABLE]
    others = [short_name(flag) for flag in flags if flag not in NOT_COMPARABLE]
    return [f"not comparable: {', '.join(reasons)}", *others] if reasons else others
