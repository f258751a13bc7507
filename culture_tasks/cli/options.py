"""Options that several commands have, and how they print data, progress and findings."""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from culture_tasks import __version__
from culture_tasks.errors import SettingsError, nearest
from culture_tasks.text import escaped
from culture_tasks.text_tables import printable

if TYPE_CHECKING:
    from culture_tasks.benchmarks.interface import Task
    from culture_tasks.insertion.core.adapter import ModelOptions
    from culture_tasks.selftest.findings import Finding

AddParser = Callable[..., argparse.ArgumentParser]
"""Makes the parser of a command, from what :class:`argparse.ArgumentParser` takes."""

Item = TypeVar("Item")

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells report it."""

_IMAGE_OPTIONS = ("min_patches", "max_patches", "min_pixels", "max_pixels")


class _Form(argparse.HelpFormatter):
    """Fills the paragraphs of a description; lines of one with examples or a list, which are indented, stay."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = [part for part in text.split("\n\n") if part.strip()]
        return "\n\n".join(
            part.rstrip() if "\n  " in part else super(_Form, self)._fill_text(part, width, indent)
            for part in paragraphs
        )


class Parser(argparse.ArgumentParser):
    """A parser whose usage stays short."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"formatter_class": _Form, **options})

    def format_help(self) -> str:
        """Returns the help; where there are many options, the usage names those that are required."""
        optional = [action for action in self._actions if action.option_strings]
        if self.usage is None and len(optional) > 6:
            words = [f"{action.option_strings[0]} {action.metavar}" for action in optional if action.required]
            for action in self._get_positional_actions():
                name = str(action.metavar or action.dest)
                words.append(f"{name} ..." if action.nargs == "+" else name)
            self.usage = f"%(prog)s [options] {' '.join(words)}"
        return super().format_help()


def number(expected: str, allowed: Callable[[float], bool]) -> Callable[[str], float]:
    """Returns the type of an option whose value is a number; ``expected`` names the allowed numbers in a message."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not allowed(value):
            raise argparse.ArgumentTypeError(f"{text}: expected {expected}")
        return value

    return parse


def at_least(minimum: int) -> Callable[[str], int]:
    """Returns the type of an option that takes whole numbers from a minimum on."""
    parse = number(f"a whole number of at least {minimum}", lambda value: value >= minimum and value.is_integer())
    return lambda text: int(parse(text))


positive = number("a number above 0", lambda value: 0.0 < value < math.inf)
not_negative = number("a number of at least 0", lambda value: 0.0 <= value < math.inf)


def names(text: str) -> tuple[str, ...]:
    """Returns the names of a list with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def add_tasks(parser: argparse._ActionsContainer, meaning: str, flag: str = "--tasks") -> None:
    """Adds an option whose value is a list of tasks, with commas, which may be repeated."""
    text = f"{meaning}; a list with commas or patterns; may be repeated"
    parser.add_argument(flag, type=names, action="extend", default=[], metavar="LIST", help=text)


def matching_tasks(names: Sequence[str], command: str) -> list[Task]:
    """Returns the tasks below names or patterns of tasks, groups and tags that a user gave to a command, each once."""
    from culture_tasks.benchmarks.registry import entries, tasks_below

    tasks: dict[Task, None] = {}
    for name in names:
        matches = fnmatch.filter(entries(), name)
        if not matches:
            raise SettingsError(
                f"{command}: no task {name!r}.{nearest(name, entries())} `culture-tasks tasks` lists them."
            )
        tasks |= dict.fromkeys(task for entry in matches for task in tasks_below(entry))
    return list(tasks)


def add_repeatable(parser: argparse._ActionsContainer, flag: str, metavar: str, meaning: str, **options: Any) -> None:
    """Adds an option that may be repeated, whose values are a list."""
    parser.add_argument(flag, action="append", default=[], metavar=metavar, help=meaning, **options)


class _Once(argparse.Action):
    """Takes a value that can be given once; argparse itself lets the last one win without a word."""

    def __call__(self, _: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        if getattr(namespace, self.dest) is not None:
            raise SettingsError(f"{option_string} is given twice. Run the command once for each.")
        setattr(namespace, self.dest, values)


def add_judge(parser: argparse._ActionsContainer, meaning: str) -> None:
    """Adds the option that names the judge."""
    parser.add_argument("--judge", action=_Once, metavar="SPEC", help=meaning)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Adds the option by which a command prints data in place of its tables."""
    parser.add_argument("--json", action="store_true", help="print JSON, and nothing else, on standard output")


def print_json(content: object) -> None:
    """Prints data, dataclasses among them, as JSON; a number that isn't there is null."""
    from pydantic_core import to_jsonable_python

    plain = to_jsonable_python(content, inf_nan_mode="null", fallback=str)
    print(escaped(json.dumps(plain, ensure_ascii=False, indent=1)))


def with_progress(items: Sequence[Item], label: str) -> Iterable[Item]:
    """Returns items that show on standard error, if that is a terminal, how many of them are done."""
    from tqdm import tqdm

    bar: Iterable[Item] = tqdm(items, desc=label, file=sys.stderr, mininterval=1.0, disable=None, leave=False)
    return bar


def show_findings(findings: Iterable[tuple[str, Finding]], *, title: str, width: int, as_json: bool) -> int:
    """Prints findings as they come, each with its subject, whose width in columns is given, or all as JSON.

    Returns the exit status: 1 if something has to be fixed.
    """
    if as_json:
        entries = [{"subject": subject, **asdict(finding)} for subject, finding in findings]
        well = all(finding["state"] != "fix" for finding in entries)
        print_json({"version": __version__, "well": well, "findings": entries})
        return 0 if well else 1
    from tqdm import tqdm  # whose bar leaves room for what it writes

    print(title)
    columns = shutil.get_terminal_size(fallback=(100, 24)).columns
    states: Counter[str] = Counter()
    for subject, finding in findings:
        states[finding.state] += 1
        beginning = f"{finding.state:<4}  {subject:<{width}}  "
        lines = [(finding.found, beginning), (finding.remedy, f"{'':{len(beginning)}}-> ")]
        for text, indent in lines if finding.remedy else lines[:1]:
            filled = textwrap.fill(printable(text), columns, initial_indent=indent, subsequent_indent=" " * len(indent))
            tqdm.write(filled, file=sys.stdout)
            sys.stdout.flush()
    print(f"{states['fix']} to fix, {states['note']} to note, {states['ok']} ok")
    return 1 if states["fix"] else 0


def show(text: str, file: TextIO | None = None) -> None:
    """Prints a text in which nothing acts on the terminal, such as the name of a file."""
    print(printable(text), file=file)


@contextmanager
def writing(command: str, path: Path) -> Iterator[None]:
    """Has a command say so where a file or folder can't be written."""
    try:
        yield
    except OSError as error:
        raise SettingsError(f"{command}: can't write to {path} ({error.strerror}). Choose another place.") from None


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say how a multimodal model is loaded."""
    parser.add_argument("--revision", help="branch, tag or commit on the Hub")
    parser.add_argument("--dtype", default="auto", help="data type of the model (default: the checkpoint's)")
    parser.add_argument("--device", help="where the model runs (default: a GPU if there is one)")
    parser.add_argument("--device-map", help="spread the model over devices, such as auto")
    parser.add_argument("--attn-implementation", help="attention kernels")
    for option in _IMAGE_OPTIONS:
        flag = f"--{option.replace('_', '-')}"
        parser.add_argument(flag, type=int, metavar="N", help="for the image processor, as in the evaluation")
    parser.add_argument("--trust-remote-code", action="store_true", help="run code of the checkpoint")
    parser.add_argument("--enable-thinking", action="store_true", help="let a reasoning model reason")


def model_options(options: argparse.Namespace, device: str | None) -> ModelOptions:
    """Returns how a multimodal model is loaded."""
    from culture_tasks.insertion.core.adapter import ModelOptions

    return ModelOptions(**{name: getattr(options, name) for name in ModelOptions.model_fields} | {"device": device})


def settings_of(flag: str, texts: Sequence[str]) -> dict[str, str]:
    """Returns the values of an option of knowledge insertion that is given as ``NAME=VALUE``, by name."""
    values: dict[str, str] = {}
    for setting in texts:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise SettingsError(f"insertion: {flag} {setting!r}. Expected OPTION=VALUE, such as {flag} epochs=1.")
        values[name] = value
    return values
