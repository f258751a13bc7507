"""The metrics are a library of their own: every function that the page names has an example, and it is true."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
import sys
from operator import attrgetter
from pathlib import Path

import culture_tasks.metrics

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
MODULES = [
    *(f"culture_tasks.metrics.{module.name}" for module in pkgutil.iter_modules(culture_tasks.metrics.__path__)),
    "culture_tasks.benchmarks.cedar.metrics",
    "culture_tasks.text",
]
# Each block of the page that is a session at Python's prompt.
SESSIONS = re.findall(r"^```pycon\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def functions():
    """Yields the name, the public name and the example of each public function and of each method of a public class."""
    for module in MODULES:
        for test in doctest.DocTestFinder(exclude_empty=False).find(importlib.import_module(module)):
            own = test.name.removeprefix(f"{module}.")
            is_public = test.name != module and "._" not in test.name
            if is_public and inspect.isfunction(attrgetter(own)(sys.modules[module])):
                yield module, own, test


def test_every_example_is_true_and_every_function_on_the_page_has_one():
    named = set(re.findall(r"`(\w+)`", PAGE))
    with_example = set()
    for _, name, test in functions():
        said: list[str] = []
        result = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
        assert result.failed == 0, "".join(said)
        assert result.attempted or name not in named, f"{name} has no example"
        with_example |= {name} if result.attempted else set()
    assert {"rouge_l", "gepp", "paired_difference", "corrected_mean"} <= with_example & named


def test_what_the_page_shows_is_true():
    assert len(SESSIONS) >= 5
    for session in SESSIONS:
        said: list[str] = []
        test = doctest.DocTestParser().get_doctest(session, {}, "docs/metrics.md", None, None)
        result = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
        assert (result.attempted > 0, result.failed) == (True, 0), "".join(said)
