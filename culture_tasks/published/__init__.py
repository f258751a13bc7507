"""Results that the benchmarks' papers print, as data: for comparison with a user's own numbers.

The papers' judges measured them on the papers' data. Cells are kept exactly as printed.
"""

from culture_tasks.published.published_tables import (
    Measure,
    PrintedNumber,
    PublishedCell,
    PublishedRow,
    PublishedTable,
    all_tables,
    load,
    names,
    number,
)

__all__ = [
    "Measure",
    "PrintedNumber",
    "PublishedCell",
    "PublishedRow",
    "PublishedTable",
    "all_tables",
    "load",
    "names",
    "number",
]
