"""CrossCult-KIBench: what is left of each insertion after later ones, as in Figures 6 and 11-13."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from culture_tasks.benchmarks.crosscult.vocabulary import ORDERS, Order
from culture_tasks.report.benchmarks import PERCENT
from culture_tasks.report.layouts.crosscult import overlap_in, with_method
from culture_tasks.report.layouts.grid import Context, Place, cell_in, grid
from culture_tasks.report.model import Column, Table
from culture_tasks.report.numbers import Where
from culture_tasks.report.units import Measured

_NOTE = (
    "Reliability of what was inserted for a partition, after each step of a chain of insertions in the order that "
    "stands above. A method that keeps what it was given has the same number at every step."
)


def tables(context: Context, measured: Sequence[Measured]) -> Iterator[Table]:
    """Yields the tables of the judge's score and of ROUGE-L over all orders of insertion that were run."""
    chains = {each.unit.key: each for each in measured}
    orders = {order: chains[key] for order in ORDERS if (key := f"crosscult_retention_{'_'.join(order)}") in chains}
    if orders:
        scores = [place for order, each in orders.items() for place in _places(each, order, overlap=False)]
        overlaps = [place for order, each in orders.items() for place in _places(each, order, overlap=True)]
        yield _table(context, list(orders.values()), "crosscult_retention", "the judge's score from 0 to 10", scores)
        yield _table(context, list(orders.values()), "crosscult_retention_rouge_l", "ROUGE-L in percent", overlaps)


def _places(measured: Measured, order: Order, *, overlap: bool) -> Iterator[Place]:
    """Yields a column for each partition that has been inserted, step by step."""
    scale = PERCENT if overlap else measured.unit.scale
    for step in range(1, len(order) + 1):
        for partition in order[:step]:
            where: Where = (("partition", partition), ("after", str(step)))
            over = f"{', '.join(order).upper()}: step {step}"
            column = Column(f"{'_'.join(order)}_{partition}_after_{step}", partition.upper(), scale, over)
            yield Place(column, overlap_in(measured, where) if overlap else cell_in(measured, where))


def _table(context: Context, chains: Sequence[Measured], key: str, scores: str, places: Sequence[Place]) -> Table:
    first = {entrant: each for each in reversed(chains) for entrant in each.unit.cells}
    entrants = [entrant for entrant in context.entrants if entrant in first]
    source = "CrossCult-KIBench, Figures 6 and 11-13"
    title = f"CrossCult-KIBench: reliability after each insertion, {scores}"
    table = Table(key, title, ("Base model", "Method", "Judge"), (), (), source, "crosscult", (_NOTE,))
    return grid(context, table, places, entrants, lambda entrant: with_method(context, first[entrant])(entrant))
