"""A culture form of three steps, and a project of it: proverbs that are written, checked by others, and rated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from culture_tasks.benchmarks.culture_forms import (
    BuiltTables,
    Config,
    CultureForm,
    Entry,
    Figure,
    FormOption,
    SheetColumn,
    SheetRow,
    State,
    Step,
)
from culture_tasks.benchmarks.cultures import BuiltCulture, OffersCultures
from culture_tasks.benchmarks.interface import Benchmark
from culture_tasks.cultures.project import Project

KINDS = {"saying": "A saying", "joke": "A joke"}


def _blanks(state: State) -> list[SheetRow]:
    return [
        SheetRow(name=f"{person}-{number}", facts={"Number": str(number)}, writer=person)
        for person in state.config.people
        for number in range(1, state.config.options["blanks"] + 1)
    ]


def _written(state: State) -> list[SheetRow]:
    return [
        SheetRow(
            name=row.name,
            facts={"Question": entry.values["question"], "Answers": "\n".join(entry.values["answers"])},
            values={"rewritten": entry.values["question"]},
            not_for=frozenset({entry.person}),
            people=2,
        )
        for row in _blanks(state)
        for entry in state.entries_of("write", row.name)
    ]


def _responses(state: State) -> list[SheetRow]:
    return [
        SheetRow(
            name=f"{image.partition('.')[0]}-{number}",
            facts={"Question": f"What is on {image}?", "Response": f"0{number}: <b>&amp;</b>"},
            image=image,
            group=image,
            people=2,
        )
        for image in state.images
        for number in range(3)
    ]


STEPS = (
    Step(
        name="write",
        title="Write",
        about="Write a question.\n\nIts answers are short.",
        who="natives",
        source="nowhere",
        columns=(
            SheetColumn(name="question", title="Question", most=200),
            SheetColumn(name="answers", title="Answers", kind="texts", most=3),
            SheetColumn(name="kind", title="Kind", kind="choice", choices=KINDS, about="What it is."),
            SheetColumn(name="why", title="Why it is funny", kind="long_text", only_if=("kind", "joke")),
        ),
        rows=_blanks,
    ),
    Step(
        name="check",
        title="Check",
        about="Read what another person wrote.",
        who="natives",
        source="nowhere",
        columns=(
            SheetColumn(name="rewritten", title="Rewritten"),
            SheetColumn(name="known", title="Do you know it?", kind="yes_no"),
        ),
        rows=_written,
    ),
    Step(
        name="rate",
        title="Rate",
        about="Rate each response.",
        who="natives",
        source="nowhere",
        columns=(
            SheetColumn(name="rating", title="Rating", kind="number"),
            SheetColumn(name="comment", title="Comment", required=False),
        ),
        rows=_responses,
    ),
    Step(name="judge", title="", about="", who="", source="", columns=(), rows=_responses, by_people=False),
)


class _Form(CultureForm):
    ways = {"": "the only one"}  # noqa: RUF012
    paper = "Nobody's paper."

    def options(self, way: str) -> Sequence[FormOption]:
        assert way == ""
        about = 'How many questions each person writes. "Two" is enough: \\ no more.'
        return [
            FormOption(name="blanks", default=2, about=about),
            FormOption(name="script", default="", about="Which one?"),
        ]

    def steps(self, config: Config) -> Sequence[Step]:
        assert config.like == "toy"
        return STEPS

    def check(self, state: State) -> Iterable[str]:
        return [f"{name}: no image" for name in state.images if not name.endswith(".png")]

    def agreement(self, state: State) -> Sequence[Figure]:
        return []

    def build(self, state: State) -> BuiltTables:
        return BuiltTables(tables={})


class Toy(OffersCultures):
    """What the registry has under ``toy``."""

    def culture_form(self) -> CultureForm:
        return _Form()

    def culture(self, built: BuiltCulture) -> Benchmark:
        raise NotImplementedError


def project(folder: Path, *people: str, options: str = "", language: str = "am", seed: int = 0) -> Project:
    """Makes a project with people who do all steps; ``form_like`` must know the form."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    (folder / "inputs").mkdir(exist_ok=True)
    codes = "\n".join(f"{person} = []" for person in people)
    fields = f'name = "toyland"\ntitle = "Toyland"\nlike = "toy"\nlanguage = "{language}"\nplace = "ET"\nseed = {seed}'
    (folder / "culture.toml").write_text(f"{fields}\n[people]\n{codes}\n[options]\n{options}\n", encoding="utf-8")
    return Project.open(folder)


def written(number: int, *people: str) -> list[Entry]:
    """Returns entries of people who wrote questions."""
    values = {"answers": ["one", "two"], "kind": "saying"}
    return [
        Entry(step="write", row=f"{person}-{each}", person=person, values={"question": f"{person} {each}?", **values})
        for person in people
        for each in range(1, number + 1)
    ]
