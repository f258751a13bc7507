"""The metrics are a library of their own: light to import, and every public function has an example that is true."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import pytest

import culture_tasks.metrics

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
MODULES = [
    *(f"culture_tasks.metrics.{module.name}" for module in pkgutil.iter_modules(culture_tasks.metrics.__path__)),
    "culture_tasks.benchmarks.cedar.metrics",
    "culture_tasks.text",
]
NOT_NEEDED = ("torch", "transformers", "lm_eval", "lmms_eval", "datasets", "pandas", "pydantic", "matplotlib")

# A block of the page that is a session at Python's prompt.
SESSION = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)


# The public functions of the library and the public methods of its classes, each with its example.
FUNCTIONS = {
    test.name: test
    for name in MODULES
    for test in doctest.DocTestFinder(exclude_empty=False).find(importlib.import_module(name))
    if test.name != name and "._" not in test.name
    if inspect.isfunction(attrgetter(test.name.removeprefix(f"{name}."))(sys.modules[name]))
}


def outcome(test: doctest.DocTest) -> tuple[doctest.TestResults, str]:
    said: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=said.append, clear_globs=False)
    return result, "".join(said)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_public_function_has_an_example_that_is_true(name):
    test = FUNCTIONS[name]
    assert test.docstring.count("Examples:\n") == 1
    result, said = outcome(test)
    assert result.attempted > 0
    assert result.failed == 0, said


def test_what_the_page_shows_is_true():
    sessions = SESSION.findall(PAGE)
    assert len(sessions) >= 6
    for number, session in enumerate(sessions):
        test = doctest.DocTestParser().get_doctest(session, {}, f"docs/metrics.md, session {number + 1}", None, None)
        result, said = outcome(test)
        assert result.attempted > 0
        assert result.failed == 0, said


def test_the_page_names_only_functions_that_are_there_and_all_that_are_not_parts_of_others():
    """What the modules use among themselves is documented where it stands."""
    assert {"culture_tasks.metrics.rouge.rouge_l", "culture_tasks.benchmarks.cedar.metrics.gepp"} <= set(FUNCTIONS)
    inner = {"means", "text"}
    named = set(re.findall(r"`(\w+)`", PAGE))
    for name in FUNCTIONS:
        module, function = name.split(".")[-2:]
        if module not in inner and not module[0].isupper():
            assert function in named, f"docs/metrics.md doesn't name {name}"


BLOCKED = """
import importlib, json, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1].split(","):
            raise ImportError(f"{name} is blocked")

for name in sys.argv[3:]:
    importlib.import_module(name)
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
sys.meta_path.insert(0, Blocker())
for session in json.loads(sys.argv[2]):
    exec(session)
"""


def test_it_imports_neither_torch_nor_a_harness_and_works_without_them(tmp_path):
    """Looked at what an import loads; then the page's code is run while these packages can't be imported."""
    parser = doctest.DocTestParser()
    sessions = ["".join(each.source for each in parser.get_examples(session)) for session in SESSION.findall(PAGE)]
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, ",".join(NOT_NEEDED), json.dumps(sessions), *MODULES],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert not set(json.loads(done.stdout.splitlines()[0])) & set(NOT_NEEDED)
