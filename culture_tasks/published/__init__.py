"""Results that the benchmarks' papers print, as data: for comparison with a user's own numbers.

The papers' judges measured them on the papers' data. Cells are kept exactly as printed.
"""

from culture_tasks.published.averages import Recomputed, flags, recomputed
from culture_tasks.published.published_tables import (
    Cell,
    Column,
    Measure,
    Missing,
    Number,
    Paper,
    PublishedTable,
    Row,
    all_tables,
    load,
    names,
    number,
)

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
