"""Options that several commands have."""

from __future__ import annotations

import argparse
import math
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from culture_tasks.errors import SettingsError, nearest

if TYPE_CHECKING:
    from culture_tasks.benchmarks.interface import Task
    from culture_tasks.insertion.core.adapter import ModelOptions

AddParser = Callable[..., argparse.ArgumentParser]
"""Makes the parser of a command, from what :class:`argparse.ArgumentParser` takes."""

_IMAGE_OPTIONS = ("min_patches", "max_patches", "min_pixels", "max_pixels")


def number(expected: str, allowed: Callable[[float], bool]) -> Callable[[str], float]:
    """Returns the type of an option whose value is a number; ``expected`` names the allowed numbers in a message."""

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
not_negative = number("a number of at least 0", lambda value: 0.0 <= value < math.inf)
share = number("a number from 0 to 1", lambda value: 0.0 <= value <= 1.0)
between_0_and_1 = number("a number between 0 and 1", lambda value: 0.0 < value < 1.0)


def names(text: str) -> tuple[str, ...]:
    """Returns the names of a list with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def tasks_called(names: Sequence[str], command: str) -> list[Task]:
    """Returns the tasks below names that a user gave to a command, each once.

    Raises:
        SettingsError: If no task, group or tag has a name.
    """
    from culture_tasks.benchmarks.registry import entries, tasks_below

    for name in names:
        if name not in entries():
            raise SettingsError(
                f"{command}: no task {name!r}.{nearest(name, entries())} `culture-tasks tasks` lists them."
            )
    return list(dict.fromkeys(task for name in names for task in tasks_below(name)))


def add_repeatable(parser: argparse._ActionsContainer, flag: str, metavar: str, meaning: str, **more: Any) -> None:
    """Adds an option that may be repeated, whose values are a list."""
    parser.add_argument(flag, action="append", default=[], metavar=metavar, help=meaning, **more)


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


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say how a multimodal model is loaded."""
    parser.add_argument("--revision", help="branch, tag or commit on the Hub")
    parser.add_argument("--dtype", default="auto", help="data type of the model (default: the checkpoint's)")
    parser.add_argument("--device", help="where the model runs (default: a GPU if there is one)")
    parser.add_argument("--device-map", help="spread the model over devices, such as auto")
    parser.add_argument("--attn-implementation", help="attention kernels")
    for option in _IMAGE_OPTIONS:
        flag = f"--{option.replace('_', '-')}"
        parser.add_argument(flag, type=int, metavar="N", help="option of the image processor; evaluate with the same")
    parser.add_argument("--trust-remote-code", action="store_true", help="run code of the checkpoint")
    parser.add_argument("--enable-thinking", action="store_true", help="let a reasoning model reason")


def model_options(options: argparse.Namespace, device: str | None) -> ModelOptions:
    """Returns how a multimodal model is loaded."""
    from culture_tasks.insertion.core.adapter import ModelOptions

    names = ("revision", "dtype", "device_map", "attn_implementation", "trust_remote_code")
    return ModelOptions(
        **{name: getattr(options, name) for name in names},
        device=device,
        template={"enable_thinking": options.enable_thinking},
        images={name: value for name in _IMAGE_OPTIONS if (value := getattr(options, name)) is not None},
    )


def settings_of(flag: str, given: Sequence[str]) -> dict[str, str]:
    """Returns the values of an option of knowledge insertion that is given as ``NAME=VALUE``, by name."""
    parsed: dict[str, str] = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise SettingsError(f"insertion: {flag} {setting!r}. Expected OPTION=VALUE, such as {flag} epochs=1.")
        parsed[name] = value
    return parsed
