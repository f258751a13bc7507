"""The dishes of WorldCuisines: their images, which are the user's files or the knowledge base's, and countries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator

from culture_tasks.benchmarks.fields import listed
from culture_tasks.data.files import Rows, read_parquet
from culture_tasks.data.images import Images
from culture_tasks.data.reading import DataReading
from culture_tasks.data.rows import TableRow, validated
from culture_tasks.data.tables import Table
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings

if TYPE_CHECKING:
    import datasets


class Dish(TableRow):
    """Where a dish of the knowledge base is from."""

    countries: Annotated[list[str], BeforeValidator(listed)]


KNOWLEDGE_BASE = Table(
    model=Dish, folder="worldcuisines", stems=("food-kb",), hub="worldcuisines/food-kb", split="main"
)


@dataclass(frozen=True)
class Dishes:
    """The images and countries of dishes."""

    folder: Path  # of the user's own images
    base: datasets.Dataset | None = None  # the knowledge base, which has images beside their addresses
    countries: Mapping[str, str] = field(default_factory=dict)  # of dishes with one, by the addresses of their images
    reading: DataReading = field(default_factory=DataReading)

    @classmethod
    def of(cls, settings: Settings, folder: Path, *, own: bool) -> Dishes:
        """Returns the dishes of the user's ``own`` images, or of the knowledge base."""
        if own:
            return cls(folder)
        if paths := KNOWLEDGE_BASE.files(settings):
            base, reading = read_parquet(paths[0]), DataReading()
        else:
            base, reading = KNOWLEDGE_BASE.download(
                settings,
                "Put worldcuisines/food-kb.parquet, or the images in worldcuisines/images/ and their names in the "
                "column 'image', into the folder that CULTURE_TASKS_DATA names.",
            )
        return cls(folder, base, _countries(base), reading)

    def images(self, pictures: Mapping[str, str], most: int) -> datasets.Dataset:
        """Returns the images of questions as a column, each read and checked once, for ``most`` pixels.

        ``pictures`` are the file or address of each question's image, by where the question is from.
        """
        first = {picture: where for where, picture in reversed(list(pictures.items()))}
        if "" in first:
            raise DataError(
                f"{first['']}, field 'image_url': found nothing. Expected the image's address, or its file."
            )
        names, stored = (list(first), None) if self.base is None else _stored(first, self.base)
        places = [first[name] for name in names]
        rows = Rows[Any](self.folder.name, [{}] * len(names), stored, places=places, folder=self.folder)
        position = {picture: index for index, picture in enumerate(names)}
        return Images(rows, names).column(most).select([position[picture] for picture in pictures.values()])


def _stored(first: Mapping[str, str], base: datasets.Dataset) -> tuple[list[str], datasets.Dataset]:
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
    for address, where in missing.items():
        raise DataError(
            f"{where}, field 'image_url': {KNOWLEDGE_BASE.name} has no image {address!r:.200}, and "
            f"{len(missing) - 1} more are missing. Name files of your own in the column 'image'."
        )
    return addresses, datasets.concatenate_datasets(parts)


def _countries(base: datasets.Dataset) -> dict[str, str]:
    """Returns the country of each dish by the addresses of its images; a dish of several, or of all, has none."""
    names = [name for name in base.column_names if name.lower() == "countries"]
    found = Rows(KNOWLEDGE_BASE.name, [{"countries": countries} for name in names for countries in base[name]])
    columns = [base[name] for name in base.column_names if name.endswith("_url")] if names else []
    return {
        address: dish.countries[0]
        for dish, *addresses in zip(validated(found, Dish), *columns, strict=True)
        if len(dish.countries) == 1 and dish.countries != ["Global"]
        for address in addresses
    }
