"""The locks have a version that fits for every requirement of pyproject.toml; `make lock` mends them."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NEEDED = PROJECT["project"]["dependencies"]
GROUPS = PROJECT["dependency-groups"]
LOCKS = {
    "lock.txt": [*NEEDED, *GROUPS["dev"]],
    "engines.txt": [*NEEDED, *PROJECT["project"]["optional-dependencies"]["preferences"], *GROUPS["engines"]],
}


@pytest.fixture(scope="module")
def locked():
    versions = {}
    for name in LOCKS:
        lines = (ROOT / "requirements" / name).read_text(encoding="utf-8").splitlines()
        pins = [Requirement(line.rstrip(" \\")) for line in lines if line and not line.startswith((" ", "#"))]
        versions[name] = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins}
    return versions


@pytest.mark.parametrize("name", LOCKS)
def test_every_pin_has_hashes(name):
    entries = re.split(r"^(?=\w)", (ROOT / "requirements" / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [entry.splitlines()[0] for entry in entries[1:] if "--hash=sha256:" not in entry] == []


@pytest.mark.parametrize(("name", "line"), [(name, line) for name, lines in LOCKS.items() for line in lines])
def test_every_requirement_is_locked(locked, name, line):
    requirement = Requirement(line)
    version = locked[name].get(canonicalize_name(requirement.name))
    assert version is not None, f"{line} isn't in requirements/{name}: run make lock"
    assert requirement.specifier.contains(version), f"{version} is locked, {line} is asked for: run make lock"
