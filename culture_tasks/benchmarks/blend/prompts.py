"""What the evaluated model is asked: the paper's prompts inst-4 and pers-3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict

from culture_tasks.benchmarks.blend.regions import LANGUAGES, Region
from culture_tasks.data.sources import Source, read_source
from culture_tasks.data.tables import Identifier, OptionalText, validated
from culture_tasks.errors import DataError, DataUnavailableError
from culture_tasks.prompt_files import PromptFile, load

Wording = Literal["inst", "pers"]
"""``inst`` asks for an answer (the paper's inst-4), ``pers`` asks a person from the region (its pers-3)."""

WORDINGS: tuple[Wording, ...] = get_args(Wording)

PAPER_NAMES: Mapping[Wording, str] = {"inst": "inst-4", "pers": "pers-3"}

AUTHORS_PROMPTS = "https://github.com/nlee0212/BLEnD (data/prompts)"


class PromptRow(BaseModel):
    """One row of the authors' ``<Region>_prompts.csv``; some of their files have drafts in further columns."""

    model_config = ConfigDict(extra="forbid")

    id: Identifier
    translation: OptionalText = None


_COLUMNS = {"id": "id", "Translation": "translation"}


def prompt_source(region: Region) -> Source:
    """Where the prompts in a region's language are looked for."""
    return Source(folder="blend", stems=(f"prompts/{region.name}_prompts", f"*/{region.name}_prompts"), hub=None)


def english_prompt(wording: Wording) -> PromptFile:
    """Returns the English prompt, with the slots ``{question}`` and, for ``pers``, ``{region}``."""
    return load(__package__, f"{PAPER_NAMES[wording].replace('-', '_')}.en.v1")


def local_prompt(region: Region, wording: Wording, data_folder: Path | None) -> PromptFile:
    """Returns the prompt in the region's language, with the slot ``{q}``, from the authors' file in the user's folder.

    The translations are part of the authors' data and are not on the Hub.

    Raises:
        DataError: If the file is missing, or its prompt can't be used.
    """
    try:
        table = read_source(prompt_source(region), data_folder)
    except DataUnavailableError:
        raise DataUnavailableError(
            f"blend: found no prompts in {LANGUAGES[region.language]}. Expected "
            f"blend/prompts/{region.name}_prompts.csv in the folder that CULTURE_TASKS_DATA names. "
            f"Take it from {AUTHORS_PROMPTS}. The tasks that ask in English need no such file."
        ) from None
    wanted = PAPER_NAMES[wording]
    table = replace(table, rows=[{name: text for name, text in row.items() if name in _COLUMNS} for row in table.rows])
    for index, row in enumerate(validated(table, PromptRow, _COLUMNS)):
        if row.id != wanted:
            continue
        if row.translation is None or row.translation.count("{q}") != 1:
            raise DataError(
                f"{table.where(index)}, field 'Translation': found {row.translation!r:.80}. Expected the prompt "
                f"{wanted} in {LANGUAGES[region.language]}, with {{q}} once, where the question goes. Correct it."
            )
        return PromptFile(f"{wanted.replace('-', '_')}.{region.slug}", row.translation)
    raise DataError(f"{table.origin}: no row with the id {wanted!r}. Take the authors' file, {AUTHORS_PROMPTS}.")
