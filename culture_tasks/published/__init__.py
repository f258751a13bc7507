"""Results that the benchmarks' papers print, as data: what a user's own numbers can be put beside.

They were measured by the papers' judges on the papers' data. A cell is kept exactly as printed.
"""

from culture_tasks.published.averages import Recomputed, flags, recomputed
from culture_tasks.published.loading import all_tables, load, names
from culture_tasks.published.model import Cell, Column, Measure, Missing, Paper, PublishedTable, Row
from culture_tasks.published.printed import Number, number

__all__ = [
    "Cell",
    "Column",
    "Measure",
    "Missing",
    "Number",
    "Paper",
    "PublishedTable",
    "Recomputed",
    "Row",
    "all_tables",
    "flags",
    "load",
    "names",
    "number",
    "recomputed",
]
