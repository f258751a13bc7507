"""The paper's own results, and Overall recomputed from their columns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from culture_tasks.published import load
from culture_tasks.published.printed import number

if TYPE_CHECKING:
    from culture_tasks.published import PublishedTable, Row

Score = Literal["rouge_l", "judge_score"]

_HALF_A_DIGIT = 0.005


class Result(NamedTuple):
    """One row of Table 2 or 3, in one of its two scores.

    Attributes:
        table: 2 (single-insert) or 3 (sequential-insert).
        base_model: The model that knowledge was inserted into.
        method: The method of insertion.
        score: ``rouge_l`` in percent, or ``judge_score`` from 0 to 10.
        columns: The columns by role, two digits after the point.
        printed_overall: Overall as printed.
    """

    table: int
    base_model: str
    method: str
    score: Score
    columns: Mapping[str, float]
    printed_overall: float

    @property
    def overall(self) -> float:
        """Overall recomputed: the mean of the columns with equal weight (equations 8 and 12)."""
        return overall(self.columns)

    @property
    def agrees(self) -> bool:
        """Whether the printed Overall can be that of the printed columns, all of them being rounded."""
        return abs(self.overall - self.printed_overall) <= 2 * _HALF_A_DIGIT + 1e-9


def overall(columns: Mapping[str, float]) -> float:
    """Mean of the roles with equal weight: equation 8 over four of them, equation 12 over three.

    In the unit and range of the columns; higher is better.
    """
    return sum(columns.values()) / len(columns)


@cache
def results() -> tuple[Result, ...]:
    """Returns Tables 2 and 3, each row once a score."""
    tables = (load("crosscult_table_2"), load("crosscult_table_3"))
    return tuple(_result(table, row, score) for table in tables for row in table.rows for score in get_args(Score))


def _result(table: PublishedTable, row: Row, score: Score) -> Result:
    columns = {
        column.keys["role"]: number(printed).value
        for column, printed in zip(table.columns, row.cells, strict=True)
        if column.measure == score and printed
    }
    printed = columns.pop("overall")
    return Result(table.table, row.keys["model"], row.keys["method"], score, columns, printed)
