"""A group that makes a culture in a test: a project on disk whose people fill in what a step asks them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from culture_tasks.benchmarks.culture_forms import MODEL, Entry, SheetRow, State
from culture_tasks.benchmarks.cultures import BuiltCulture
from culture_tasks.cultures.building import build
from culture_tasks.cultures.project import Project, problems_with
from culture_tasks.settings import Settings


def with_options(state: State, **options: Any) -> State:
    """Returns a project's state under other decisions of its group."""
    return replace(state, config=replace(state.config, options={**state.config.options, **options}))


SKIP = object()
"""What a person answers who skips a row."""


def fill_in(project: Project, data: Path | None, step: str, person: str, answer: Callable[[SheetRow], Any]) -> int:
    """Fills in what a person may of a step and still needs somebody; returns the number of entries.

    An answer is the values, SKIP, or None for what is left open.
    """
    state, entries = project.state(data), []
    rows = project.step(step).rows(state)
    assert len({row.name for row in rows}) == len(rows)
    for row in rows:
        may = (
            row.writer in ("", person)
            and person not in row.not_for
            and len(state.entries_of(step, row.name)) < row.people
        )
        there = {entry.person for entry in state.entries.get(step, {}).get(row.name, ())}
        if person in there or not (may or person.startswith(MODEL)):
            continue
        values = answer(row)
        if values is SKIP:
            entries.append(Entry(step=step, row=row.name, person=person, skipped="no reason"))
        elif values is not None:
            assert problems_with(project.step(step).columns, values) == []
            entries.append(Entry(step=step, row=row.name, person=person, values=values))
    return project.add(entries, "test")


class Group:
    """A project, and what its people do."""

    def __init__(self, folder: Path, like: str, people: Mapping[str, list[str]], **fields: Any) -> None:
        """Makes the project; ``fields`` are those of ``culture.toml``, with the options under ``options``."""
        options = fields.pop("options", {})
        lines = [f"{name} = {json.dumps(value)}" for name, value in {**fields, "like": like}.items()]
        for section, values in (("people", people), ("options", options), ("card", {"licence": "CC BY 4.0"})):
            lines += [f"[{section}]", *(f"{name} = {json.dumps(value)}" for name, value in values.items())]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "culture.toml").write_text("\n".join(lines), encoding="utf-8")
        self.project = Project.open(folder)

    def input(self, name: str, content: str | bytes) -> None:
        """Writes a file of the project."""
        path = self.project.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def do(self, step: str, person: str, answer: Callable[[SheetRow], Any]) -> int:
        """Fills in the open rows of a step."""
        return fill_in(self.project, None, step, person, answer)

    def ask(self, step: str, model: str, reply: Callable[[str], str]) -> int:
        """Has a model fill in a step: ``reply`` is given the prompt's texts."""
        ask = self.project.step(step).ask
        assert ask is not None

        def answer(row: SheetRow) -> Mapping[str, Any]:
            return ask.read(reply("\n".join(part for part in ask.prompt(row).parts if isinstance(part, str))))

        return self.do(step, f"{MODEL}{model}", answer)

    def build(self, data: Path | None = None) -> BuiltCulture:
        """Builds the culture, as its folder says it."""
        return build(self.project, Settings(data=data)).culture

    def table(self, name: str) -> list[dict[str, Any]]:
        """Returns a built table."""
        return json.loads((self.project.folder / "built" / "data" / f"{name}.json").read_text(encoding="utf-8"))
