"""How far a project is: for each step what is done, and for whom there is something to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from culture_tasks.benchmarks.cultures import SheetRow, State, Step
from culture_tasks.cultures.project import Project


class StepProgress(NamedTuple):
    """How far a step is.

    Attributes:
        rows: The rows on which it is done now.
        missing: The number of further people that each unfinished row needs.
        entries: Number of entries of people, skipped rows aside.
        skipped: Number of rows that people skipped.
        by_models: Number of entries of models.
    """

    step: Step
    rows: tuple[SheetRow, ...]
    missing: dict[str, int]
    entries: int
    skipped: int
    by_models: int

    @property
    def complete(self) -> int:
        """Number of rows that need nobody else."""
        return len(self.rows) - len(self.missing)


def progress(project: Project, state: State) -> Iterator[StepProgress]:
    """Yields how far each step is, in order."""
    for step in project.steps.values():
        rows = tuple(step.rows(state))
        missing = {row.name: open_places(step, row, state) for row in rows}
        yield StepProgress(
            step=step,
            rows=rows,
            missing={name: number for name, number in missing.items() if number},
            entries=sum(len(state.of(step.name, row.name)) for row in rows),
            skipped=sum(len(state.skipped(step.name, row.name)) for row in rows),
            by_models=sum(len(state.by_models(step.name, row.name)) for row in rows),
        )


def open_places(step: Step, row: SheetRow, state: State) -> int:
    """Returns how many more people a row needs; none where its step is a model's."""
    return max(0, row.people - len(state.of(step.name, row.name))) if step.by_people else 0
