"""The names of WorldCuisines: its sets, its types of questions, and its languages and registers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

SetName = Literal["small", "large"]
SETS: tuple[SetName, ...] = get_args(SetName)
"""Its evaluation sets. The questions of the small one are among those of the large one."""

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
