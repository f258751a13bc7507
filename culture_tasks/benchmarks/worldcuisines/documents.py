"""WorldCuisines' questions as documents of a harness, with the images of its knowledge base of dishes.

The questions of both sets are on the Hub and, as a file for each language, in the authors' repository. They name their
images by address. The authors read the images from the knowledge base, which has them beside the same addresses.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from culture_tasks.benchmarks.interface import Documents
from culture_tasks.data.files import RowTable, read_file, read_parquet
from culture_tasks.data.hub import load_split
from culture_tasks.data.images import image_column
from culture_tasks.data.releases import ReleaseFacts, check_release
from culture_tasks.data.rows import (
    Identifier,
    Label,
    OptionalIdentifier,
    OptionalLabel,
    TableRow,
    Text,
    fingerprint,
    one_of,
    unique,
    validated,
)
from culture_tasks.data.sources import Source, folder_of, local_file, read_source
from culture_tasks.errors import DataError

if TYPE_CHECKING:
    import datasets

    from culture_tasks.settings import Settings

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

LANGUAGES: Mapping[str, str] = {
    "ar": "Arabic",
    "az": "Azerbaijani",
    "bn": "Bengali",
    "cs": "Czech",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "hi": "Hindi",
    "id_casual": "Indonesian (casual)",
    "id_formal": "Indonesian (formal)",
    "it": "Italian",
    "ja_casual": "Japanese (casual)",
    "ja_formal": "Japanese (formal)",
    "jv_krama": "Javanese (Krama)",
    "jv_ngoko": "Javanese (Ngoko)",
    "ko_casual": "Korean (casual)",
    "ko_formal": "Korean (formal)",
    "mr": "Marathi",
    "nan": "Hokkien (written)",
    "nan_spoken": "Hokkien (spoken)",
    "ru_casual": "Russian (casual)",
    "ru_formal": "Russian (formal)",
    "sc": "Sardinian",
    "si_formal_spoken": "Sinhala",
    "su_loma": "Sundanese",
    "th": "Thai",
    "tl": "Tagalog",
    "yo": "Yoruba",
    "yue": "Cantonese",
    "zh_cn": "Chinese",
}
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

_LOCAL_NAMES = "food-kb"
_WITHOUT_THE_HUB = (
    "Put worldcuisines/food-kb.parquet, or the images in worldcuisines/images/ and their names in the column 'image', "
    "into the folder that CULTURE_TASKS_DATA names."
)
_INSTRUCTION = "\n\nPrint only the answer"

KNOWLEDGE_BASE = Source(
    folder="worldcuisines",
    stems=(_LOCAL_NAMES,),
    hub="worldcuisines/food-kb",
    split="main",
    additions=tuple(
        f"{stem}_task{number}" for stem in ("small", "large", "*_small_eval", "*_large_eval") for number in (1, 2)
    ),
)


def question_source(set_name: SetName, config: str) -> Source:
    """Where the questions of a set are looked for: one file, the authors' file for each language, or the Hub."""
    return Source(
        folder="worldcuisines",
        stems=(f"{set_name}_{config}", f"en_{set_name}_eval_{config}", f"*/en_{set_name}_eval_{config}"),
        hub="worldcuisines/vqa",
        config=config,
        split=f"test_{set_name}",
        additions=(_LOCAL_NAMES,),
        release=ReleaseFacts(rows=QUESTIONS[set_name, config] * len(LANGUAGES)),
    )


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


def identifier_of(row: CuisineRow) -> str:
    """Returns the identifier of a row within its table."""
    return f"{row.qa_id} in {row.lang}"


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


def tables(source: Source, data_folder: Path | None) -> Iterator[RowTable]:
    """Yields the tables of a set: one, or the authors' file for each language."""
    path = local_file(source, data_folder)
    if path is None or path.stem == source.stems[0]:
        yield read_source(source, data_folder)
        return
    ending = path.name.removeprefix("en_")
    for file in sorted(path.parent.glob(f"*_{ending}")):
        yield read_file(file)


def load(set_name: SetName, question_type: QuestionType, form: Format, settings: Settings) -> Documents:
    """Loads the questions of a type with their images; raises DataError if either can't be used."""
    source = question_source(set_name, question_type.config)
    places, rows = _rows(source, settings.data_folder)
    data = fingerprint(row.model_dump(exclude={"image", "image_url"}) for row in rows)
    indices = [index for index, row in enumerate(rows) if row.prompt_type == question_type.code]
    if not indices:
        raise DataError(
            f"{places[0].partition(', row')[0]}: found no row of type {question_type.code}, {question_type.title}. "
            "Add rows, or leave this task out."
        )
    answers: dict[str, dict[str, str]] = defaultdict(dict)
    for row in rows:
        answers[row.qa_id][row.lang] = row.answer
    questions = [rows[index] for index in indices]
    base = None if any(row.image for row in questions) else _knowledge_base(settings)
    countries = _countries(base)
    documents = [
        _document(row, form, answers[row.qa_id])
        | {"type": question_type.name, "country": countries.get(row.picture, ""), "data": data}
        for row in questions
    ]
    images = _images(questions, [places[index] for index in indices], base, folder_of(source, settings.data_folder))
    return Documents(documents, images)


def _rows(source: Source, data_folder: Path | None) -> tuple[list[str], list[CuisineRow]]:
    """Returns where each row is, and the rows."""
    read, rows = list(tables(source, data_folder)), list[CuisineRow]()
    for table in read:
        checked = validated(table, CuisineRow)
        list(unique(table, map(identifier_of, checked), "qa_id"))
        for problem in misplaced(table, dict(enumerate(checked)), source):
            raise DataError(problem)
        rows += checked
    places = [table.where(index) for table in read for index in range(len(table.rows))]
    release = replace(read[0], origin=source.stems[0] if len(read) > 1 else read[0].origin, rows=list(map(vars, rows)))
    check_release(source.release, release, release.rows)
    return places, rows


def misplaced(table: RowTable, rows: Mapping[int, CuisineRow], source: Source) -> Iterator[str]:
    """Yields the rows whose type belongs to the other part of the data."""
    allowed = [kind.code for kind in TYPES if kind.config == source.config]
    for index, row in rows.items():
        if row.prompt_type not in allowed:
            yield (
                f"{table.where(index)}, field 'prompt_type': found {row.prompt_type!r}. Expected one of "
                f"{', '.join(allowed)} in {source.config}. Move the row to the other file."
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
    rows: Sequence[CuisineRow], places: Sequence[str], base: datasets.Dataset | None, folder: Path
) -> datasets.Dataset:
    """Returns the images of the rows as a column, each read and checked once: files, or the knowledge base's."""
    first = {row.picture: place for row, place in zip(reversed(rows), reversed(places), strict=True)}
    if "" in first:
        raise DataError(f"{first['']}, field 'image_url': found nothing. Expected the image's address, or its file.")
    pictures, stored_images = (list(first), None) if base is None else _stored_images(first, base)
    table = _Images(folder.name, [{"place": first[picture]} for picture in pictures], stored_images)
    images = image_column(table, pictures, folder)
    position = {picture: index for index, picture in enumerate(pictures)}
    return images.select([position[row.picture] for row in rows])


class _Images(RowTable):
    """The distinct images of some questions, each in the place of the first question that shows it."""

    def where(self, index: int) -> str:
        return str(self.rows[index]["place"])


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


def _knowledge_base(settings: Settings) -> datasets.Dataset:
    path = local_file(KNOWLEDGE_BASE, settings.data_folder)
    if path is None:
        return load_split(str(KNOWLEDGE_BASE.hub), None, KNOWLEDGE_BASE.split, _WITHOUT_THE_HUB)
    if path.suffix != ".parquet":
        raise DataError(f"{path}: found a file ending in {path.suffix!r}. Expected the images in a Parquet file.")
    return read_parquet(path)
