"""WorldCuisines' questions as documents of a harness, with the images of its knowledge base of dishes.

The questions of both sets are on the Hub and, as a file for each language, in the authors' repository. They name their
images by address. The authors read the images from the knowledge base, which has them beside the same addresses.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from culture_tasks.benchmarks.interface import Documents
from culture_tasks.benchmarks.reporting import names_in
from culture_tasks.data.checking import Count, count
from culture_tasks.data.files import RowTable, read_parquet
from culture_tasks.data.images import image_column, image_problems
from culture_tasks.data.reading import DataReading
from culture_tasks.data.rows import (
    Identifier,
    Label,
    OptionalIdentifier,
    OptionalLabel,
    TableRow,
    Text,
    one_of,
    validated,
)
from culture_tasks.data.tables import Release, Rows, Table
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings

if TYPE_CHECKING:
    import datasets


SetName = Literal["small", "large"]
SETS: tuple[SetName, ...] = get_args(SetName)
"""Its evaluation sets. The large one has all questions of the small one."""

Format = Literal["choices", "open"]


def group_name(set_name: SetName, form: Format) -> str:
    """Returns the name of the group of a set's tasks with a form of answer."""
    return "worldcuisines" + ("_large" if set_name == "large" else "") + ("_open" if form == "open" else "")


class QuestionType(NamedTuple):
    """A type of question: its names here and in the paper's tables, its part of the data, and its number there."""

    name: str
    title: str
    config: str
    code: str


TYPES = (
    QuestionType("dish", "Dish Name (No-Context)", "task1", "1"),
    QuestionType("dish_context", "Dish Name (Contextualized)", "task1", "3"),
    QuestionType("dish_adversarial", "Dish Name (Adversarial)", "task1", "4"),
    QuestionType("origin", "Regional Cuisine", "task2", "2"),
)

LANGUAGES = names_in(__package__, "languages.txt")
"""The 30 languages and registers, by their codes in the data. Each weighs the same in the paper's means."""

CODES = tuple(dict.fromkeys(code.partition("_")[0] for code in LANGUAGES))
"""ISO codes of the languages, registers aside."""

QUESTIONS: Mapping[tuple[SetName, str], int] = {
    ("small", "task1"): 300,
    ("small", "task2"): 100,
    ("large", "task1"): 1_500,
    ("large", "task2"): 500,
}
"""Questions in each language."""

_INSTRUCTION = "\n\nPrint only the answer"


class CuisineRow(TableRow):
    """A question in one language."""

    qa_id: Identifier
    lang: Annotated[Label, one_of(LANGUAGES)]
    prompt_type: Annotated[Identifier, Field(pattern="^[1-4]$")]
    multi_choice_prompt: Text
    open_ended_prompt: Text
    multi_choice_answer: int
    answer: Text
    image_url: OptionalLabel = None
    image: OptionalLabel = None
    food_id: OptionalIdentifier = None
    prompt_id: OptionalIdentifier = None
    task: OptionalLabel = None
    lang_status: OptionalLabel = None

    @field_validator("multi_choice_answer")
    @classmethod
    def _is_an_option(cls, number: int, info: ValidationInfo) -> int:
        options = options_of(info.data.get("multi_choice_prompt", ""))
        if str(number) not in options:
            raise ValueError(f"Expected the number of an option in 'multi_choice_prompt', which has {len(options)}")
        return number

    @property
    def picture(self) -> str:
        """The name of its image: the user's file, else the address."""
        return self.image or self.image_url or ""


class Dish(TableRow):
    """Where a dish of the knowledge base is from."""

    countries: Annotated[list[str], BeforeValidator(lambda text: json.loads(text) if isinstance(text, str) else text)]


_OPTION = re.compile(r"^([1-5])\. (.*)$", re.MULTILINE)


def options_of(prompt: str) -> dict[str, str]:
    r"""Returns the texts of the options that a prompt ends with, by their number.

    Examples:
        >>> options_of("What is this?\n1. Naan\n2. Pita\n\nPrint only the answer.")
        {'1': 'Naan', '2': 'Pita'}
    """
    return dict(_OPTION.findall(prompt.rpartition(_INSTRUCTION)[0]))


def load(set_name: SetName, question_type: QuestionType, form: Format, settings: Settings) -> Documents:
    """Loads the questions of a type with their images; raises DataError if either can't be used."""
    found = question_table(set_name, question_type.config).rows(settings)
    data = found.fingerprint(exclude={"image", "image_url"})
    indices = [index for index, row in enumerate(found.rows) if row.prompt_type == question_type.code]
    if not indices:
        raise DataError(
            f"{found.where(0).partition(', row')[0]}: found no row of type {question_type.code}, "
            f"{question_type.title}. Add rows, or leave this task out."
        )
    answers: dict[str, dict[str, str]] = defaultdict(dict)
    for row in found.rows:
        answers[row.qa_id][row.lang] = row.answer
    questions = [found.rows[index] for index in indices]
    base, base_reading = (None, DataReading()) if any(row.image for row in questions) else _knowledge_base(settings)
    countries = _countries(base)
    documents = [
        _document(row, form, answers[row.qa_id])
        | {"type": question_type.name, "country": countries.get(row.picture, ""), "data": data}
        for row in questions
    ]
    images = _images(questions, [found.where(index) for index in indices], base, found.table.folder, settings)
    return Documents(documents, images, found.reading | base_reading)


def _misplaced(config: str, found: Rows[CuisineRow]) -> Iterator[str]:
    """Yields the rows whose type belongs to the other part of the data."""
    allowed = [kind.code for kind in TYPES if kind.config == config]
    for index, row in enumerate(found.rows):
        if row.prompt_type not in allowed:
            yield (
                f"{found.where(index)}, field 'prompt_type': found {row.prompt_type!r}. Expected one of "
                f"{', '.join(allowed)} in {config}. Move the row to the other file."
            )


def _own_images(found: Rows[CuisineRow], settings: Settings) -> Iterator[str]:
    """Yields the problems of the user's own image files; the Hub's are checked by each run."""
    own = [index for index, row in enumerate(found.rows) if row.image]
    names = [found.rows[index].image for index in own]
    yield from image_problems(found.table.part(own), names, found.table.folder, settings.image_pixels, set())


def _counts(set_name: SetName, config: str, rows: Sequence[CuisineRow]) -> Iterator[Count]:
    name, questions = f"{set_name} set, {config}", QUESTIONS[set_name, config]
    yield count(f"{name}: questions", len({row.qa_id for row in rows}), questions)
    yield count(f"{name}: languages", len({row.lang for row in rows}), len(LANGUAGES))
    yield count(f"{name}: rows", len(rows), questions * len(LANGUAGES))


@cache
def question_table(set_name: SetName, config: str) -> Table[CuisineRow]:
    """Returns the table of a set's questions: one file, the authors' file for each language, or the Hub's."""
    files = f"*_{set_name}_eval_{config}"
    return Table(
        model=CuisineRow,
        folder="worldcuisines",
        stems=(f"{set_name}_{config}",),
        parts=(files, f"*/{files}"),
        hub="worldcuisines/vqa",
        config=config,
        split=f"test_{set_name}",
        additions=("food-kb",),
        id="qa_id",
        id_of=lambda row: f"{row.qa_id} in {row.lang}",
        release=Release(rows=QUESTIONS[set_name, config] * len(LANGUAGES)),
        rules=partial(_misplaced, config),
        beside=_own_images,
        counts=partial(_counts, set_name, config),
    )


KNOWLEDGE_BASE = Table(
    model=Dish,
    folder="worldcuisines",
    stems=("food-kb",),
    hub="worldcuisines/food-kb",
    split="main",
    additions=tuple(f"{name}_task{number}" for name in ("small", "large", "*_eval") for number in (1, 2)),
)


def _document(row: CuisineRow, form: Format, answers: Mapping[str, str]) -> dict[str, Any]:
    """Returns a document; ``dish`` is the same for all questions about a dish, ``answers`` are by language."""
    shared = {
        "id": f"{row.qa_id}-{row.lang}",
        "language": row.lang,
        "dish": row.food_id or row.picture,
        "image_id": row.picture,
    }
    if form == "choices":
        return {**shared, "prompt": row.multi_choice_prompt, "answer": str(row.multi_choice_answer)}
    return {
        **shared,
        "prompt": row.open_ended_prompt,
        "answer": row.answer,
        "english": answers.get("en", row.answer),
        "references": list(dict.fromkeys([row.answer, *answers.values()])),
    }


def _images(
    rows: Sequence[CuisineRow],
    places: Sequence[str],
    base: datasets.Dataset | None,
    folder: Path,
    settings: Settings,
) -> datasets.Dataset:
    """Returns the images of the rows as a column, each read and checked once: files, or the knowledge base's."""
    first = {row.picture: place for row, place in zip(reversed(rows), reversed(places), strict=True)}
    if "" in first:
        raise DataError(f"{first['']}, field 'image_url': found nothing. Expected the image's address, or its file.")
    pictures, stored_images = (list(first), None) if base is None else _stored_images(first, base)
    table = RowTable(folder.name, [{}] * len(pictures), stored_images, places=[first[name] for name in pictures])
    images = image_column(table, pictures, folder, settings.image_pixels)
    position = {picture: index for index, picture in enumerate(pictures)}
    return images.select([position[row.picture] for row in rows])


def _stored_images(first: Mapping[str, str], base: datasets.Dataset) -> tuple[list[str], datasets.Dataset]:
    """Returns addresses of images in the order of the knowledge base, and the images."""
    import datasets

    missing = dict(first)
    addresses: list[str] = []
    parts = []
    for column in (f"image{number}" for number in range(1, 9)):
        if {column, f"{column}_url"} <= set(base.column_names):
            rows = {address: row for row, address in enumerate(base[f"{column}_url"]) if missing.pop(address, "")}
            addresses += rows
            part = base.select(list(rows.values())).select_columns([column]).rename_columns({column: "image"})
            parts.append(part.cast_column("image", datasets.Image(decode=False)))
    for address, place in missing.items():
        raise DataError(
            f"{place}, field 'image_url': {KNOWLEDGE_BASE.name} has no image {address!r:.200}, and "
            f"{len(missing) - 1} more are missing. Name files of your own in the column 'image'."
        )
    return addresses, datasets.concatenate_datasets(parts)


def _countries(base: datasets.Dataset | None) -> dict[str, str]:
    """Returns the country of each dish by the addresses of its images; a dish of several, or of all, has none."""
    names = [] if base is None else [name for name in base.column_names if name.lower() == "countries"]
    if base is None or not names:
        return {}
    table = RowTable(KNOWLEDGE_BASE.name, [{"countries": countries} for countries in base[names[0]]])
    columns = [base[name] for name in base.column_names if name.endswith("_url")]
    return {
        address: dish.countries[0]
        for dish, *addresses in zip(validated(table, Dish), *columns, strict=True)
        if len(dish.countries) == 1 and dish.countries != ["Global"]
        for address in addresses
    }


def _knowledge_base(settings: Settings) -> tuple[datasets.Dataset, DataReading]:
    paths = KNOWLEDGE_BASE.files(settings)
    if not paths:
        return KNOWLEDGE_BASE.download(
            settings,
            "Put worldcuisines/food-kb.parquet, or the images in worldcuisines/images/ and their names in the column "
            "'image', into the folder that CULTURE_TASKS_DATA names.",
        )
    if paths[0].suffix != ".parquet":
        raise DataError(
            f"{paths[0]}: found a file ending in {paths[0].suffix!r}. Expected the images in a Parquet file."
        )
    return read_parquet(paths[0]), DataReading()
