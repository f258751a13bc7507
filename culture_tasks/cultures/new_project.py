"""A new project: a folder with all decisions of the group at their defaults, and a guide for it."""

from __future__ import annotations

import json
import shutil
import textwrap
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from culture_tasks.benchmarks.culture_forms import FormOption
from culture_tasks.cultures.labels import labels_of, read_labels, write_labels
from culture_tasks.cultures.project import CONFIG, Project, form_like
from culture_tasks.errors import CultureTasksError, SettingsError
from culture_tasks.pages.markup import templates_of
from culture_tasks.text_tables import plain
from culture_tasks.vocabulary import language, place, places

CARD = {
    "licence": "The licence of the data, such as CC-BY-4.0, and the licences of sources and images.",
    "contact": "How to reach the group: an address of the institution, no person's name.",
    "people": "Who took part: how many, how they were found, who counts as a native, age bands, years in the culture.",
    "consent": "What people agreed to, and how it is recorded; the forms stay outside this folder.",
    "pay": "What people were paid, per hour, and for what was left out later.",
    "ethics": "The review board and its number, or why there was none; what was done about harmful content.",
    "sources": "Where questions, scenes and images come from.",
    "limits": "Whom the data don't speak for.",
}
"""Headings of the data card that only the group can fill in, each with the question that it answers."""

_WIDTH = 110


def create(
    name: str,
    *,
    like: str,
    language_code: str,
    place_code: str = "",
    way: str | None = None,
    title: str = "",
    folder: Path,
) -> Project:
    """Makes a project's folder, by default of the country with its name and in the form's first way.

    Raises:
        SettingsError: If the folder is there, or the language or the place isn't known.
        DataError: If another value isn't allowed.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SettingsError(f"culture new: {folder} is there already. Choose another name, or another folder with -o.")
    form = form_like(like, "culture new: --like")
    fields = {
        "name": name,
        "title": plain(title) or name.replace("_", " ").capitalize(),
        "like": like,
        "way": next(iter(form.ways)) if way is None else way,
        "language": _language(language_code),
        "place": _place(place_code, name),
    }
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = folder.parent / f".{folder.name}-{uuid.uuid4().hex}"
    try:
        for below in ("images", "inputs"):
            (unfinished / below).mkdir(parents=True)
        config = unfinished / CONFIG
        _write(config, _toml(fields, (), ()))  # so that the form can say what there is to decide
        try:
            project = Project.open(unfinished)
        except CultureTasksError as error:
            raise type(error)(str(error).replace(str(config), "culture new")) from None
        steps = project.steps.values()
        _write(config, _toml(fields, form.options(fields["way"]), [step.name for step in steps if step.by_people]))
        write_labels(unfinished, read_labels(unfinished, fields["language"]), labels_of(steps))
        guide = templates_of("culture_tasks.cultures").get_template("project.md")
        text = guide.render(config=project.config, steps=steps, form=form, folder=folder.name, ways=form.ways)
        _write(unfinished / "README.md", [text.removesuffix("\n")])
        if folder.exists():
            folder.rmdir()
        unfinished.replace(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return Project.open(folder)


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def _language(code: str) -> str:
    try:
        return language(code.strip()).code
    except KeyError:
        raise SettingsError(
            f"culture new: --language {code!r}: no such language. Expected a code of ISO 639, such as ko or yue."
        ) from None


def _place(code: str, name: str) -> str:
    try:
        return place(code.strip()).code if code.strip() else next(iter(places([name]).values()))
    except LookupError:
        problem = f"--place {code!r}: no such place" if code else f"{name!r} isn't a country, so --place is needed"
        raise SettingsError(
            f"culture new: {problem}. Expected a code of ISO 3166, such as KR or IN-AS, or 'arab'."
        ) from None


def _toml(fields: Mapping[str, str], options: Iterable[FormOption], steps: Sequence[str]) -> Iterator[str]:
    yield from _comment("What this project makes, and what the group decides. Decide before the first sheet is out.")
    yield from (f"{name} = {_value(value)}" for name, value in fields.items())
    yield from ("seed = 0", "", "[people]")
    yield from _comment(
        "A code for each person (no names), with the steps that they do; an empty list means all. Take out whoever "
        f"stops: others get what is left, and what is done stays.\nSteps: {', '.join(steps)}."
    )
    yield from (f"# p1 = {_value(steps[:1])}", "# p2 = []", "", "[options]")
    for option in options:
        yield ""
        yield from _comment(option.about)
        if option.choices:
            yield from _comment(f"One of: {', '.join(option.choices)}.")
        yield f"{option.name} = {_value(option.default)}"
    yield from ("", "[card]")
    yield from _comment("For the data card: what only the group can say.")
    for heading, question in CARD.items():
        yield from _comment(question)
        yield f'{heading} = ""'


def _comment(text: str) -> Iterator[str]:
    for paragraph in text.split("\n"):
        yield from (f"# {line}" for line in textwrap.wrap(plain(paragraph), _WIDTH))


def _value(value: object) -> str:
    """Returns a value as TOML, whose texts and lists are those of JSON."""
    return json.dumps(value, ensure_ascii=False)
