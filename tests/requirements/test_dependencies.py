"""What is imported is declared in pyproject.toml, and what is declared is imported."""

import ast
import functools
import os
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
REAL_MODEL = ROOT / "requirements" / "real_model.txt"  # installed by itself
distributions_by_package = functools.cache(packages_distributions)


def sources(folder: str) -> Iterator[Path]:
    """Yields a folder's Python files, those behind links as well."""
    for inside, _, names in os.walk(ROOT / folder, followlinks=True):
        yield from (Path(inside, name) for name in names if name.endswith(".py"))


def imported(*folders: str) -> dict[str, Path]:
    """Returns the packages that files import, wherever in the file, each with one of these files."""
    found: dict[str, Path] = {}
    for path in (path for folder in folders for path in sources(folder)):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Import(names=names):
                    modules = [alias.name for alias in names]
                case ast.ImportFrom(module=str(module), level=0):
                    modules = [module]
                case _:
                    continue
            found |= {module.partition(".")[0]: path for module in modules}
    ours = {"culture_tasks"} | {path.stem for folder in folders for path in (ROOT / folder).glob("*")}
    return {name: path for name, path in found.items() if name not in ours and name not in sys.stdlib_module_names}


def declared(*lines: str) -> set[str]:
    return {canonicalize_name(Requirement(line).name) for line in lines}


def brought_by(package: str) -> set[str]:
    """Returns the names, in one spelling, of what installs a package; the package's own where it is missing here."""
    return {canonicalize_name(name) for name in distributions_by_package().get(package, [package])}


REQUIRED = declared(*PROJECT["project"]["dependencies"])
OPTIONAL = declared(*(line for lines in PROJECT["project"]["optional-dependencies"].values() for line in lines))
FOR_DEVELOPERS = declared(*PROJECT["dependency-groups"]["dev"])
FOR_HARNESSES = {"filelock"}  # a harness imports them, and breaks with versions that it doesn't rule out
FOR_ENGINES = declared(*PROJECT["dependency-groups"]["engines"])


def test_what_the_package_imports_is_declared():
    found = imported("culture_tasks")
    assert {name: path for name, path in found.items() if not brought_by(name) & (REQUIRED | OPTIONAL)} == {}


def test_what_is_declared_is_imported():
    used = {distribution for name in imported("culture_tasks") for distribution in brought_by(name)}
    assert REQUIRED - used == FOR_HARNESSES


def test_what_tests_tools_and_examples_import_is_declared():
    others = imported("tests", "tools", "examples", "speed", "tests/support")
    engines = imported("tests/engines")
    known = REQUIRED | FOR_DEVELOPERS
    apart = {line.partition("==")[0] for line in REAL_MODEL.read_text(encoding="utf-8").splitlines() if "==" in line}
    unknown = {name: path for name, path in others.items() if not brought_by(name) & known and name not in apart}
    assert unknown.keys() <= engines.keys()
    assert {name for name in unknown if not brought_by(name) & (FOR_ENGINES | OPTIONAL)} == set()
