"""The lock has a version that fits for every requirement of pyproject.toml; `make lock` mends it."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
REQUIREMENTS = [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["dev"]]


@pytest.fixture(scope="module")
def locked():
    lines = (ROOT / "requirements" / "lock.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if line and not line.lstrip().startswith("#")]
    return {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins}


@pytest.mark.parametrize("line", REQUIREMENTS)
def test_every_requirement_is_locked(locked, line):
    requirement = Requirement(line)
    version = locked.get(canonicalize_name(requirement.name))
    assert version is not None, f"{line} isn't in requirements/lock.txt: run make lock"
    assert requirement.specifier.contains(version), f"{version} is locked, {line} is asked for: run make lock"
