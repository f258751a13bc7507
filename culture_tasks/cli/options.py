"""Types of options that several commands have."""

from __future__ import annotations

import argparse
import math
import textwrap
from collections.abc import Callable
from pathlib import Path

from culture_tasks.errors import SettingsError


def number(expected: str, allowed: Callable[[float], bool]) -> Callable[[str], float]:
    """Returns the type of an option whose value is a number.

    Args:
        expected: The allowed numbers, as a message names them.
        allowed: Whether a number is allowed.
    """

    def parsed(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not allowed(value):
            raise argparse.ArgumentTypeError(f"{text}: expected {expected}")
        return value

    return parsed


def at_least(least: int) -> Callable[[str], int]:
    """Returns the type of an option that takes whole numbers from a least one on."""
    checked = number(f"a whole number of at least {least}", lambda value: value >= least and value.is_integer())
    return lambda text: int(checked(text))


positive = number("a number above 0", lambda value: 0.0 < value < math.inf)
share = number("a number from 0 to 1", lambda value: 0.0 <= value <= 1.0)
between_0_and_1 = number("a number between 0 and 1", lambda value: 0.0 < value < 1.0)


def names(text: str) -> tuple[str, ...]:
    """Returns the names of a list with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def unwritable(command: str, folder: Path, error: OSError) -> SettingsError:
    """Returns the error for a folder that can't be written."""
    return SettingsError(f"{command}: can't write to {folder} ({error.strerror}). Choose another folder with -o.")


def rated_data() -> str:
    """Returns the rated responses that benchmarks offer, as the help of a command lists them."""
    from culture_tasks.people.rated_responses import offered

    return "\n".join(
        textwrap.fill(
            f"{each.about}: from the Hub ({each.source.hub}, split {each.source.split}), or from {each.source.folder}/"
            f"{each.source.stems[0]}.parquet (or .jsonl, .json, .csv) in the folder CULTURE_TASKS_DATA",
            112,
            initial_indent=f"  {name:<10}  ",
            subsequent_indent=" " * 14,
        )
        for name, each in offered().items()
    )
