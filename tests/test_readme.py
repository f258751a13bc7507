"""The README says what is so."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_generated_parts_are_fresh():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "readme.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_stale_readme_is_noticed(tmp_path):
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "readme.py", tmp_path / "tools" / "readme.py")
    stale = re.sub(r"\| `CULTURE_JUDGE` \|.*\n", "", README, count=1)
    assert stale != README
    (tmp_path / "README.md").write_text(stale, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(tmp_path / "tools" / "readme.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1


def test_files_that_it_names_are_there():
    for name in re.findall(r"(?:culture_tasks|benchmarks|tools|judges)/[\w./]+\.(?:py|txt)", README):
        assert (ROOT / name).is_file(), name


def test_make_targets_that_it_names_are_there():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`?make ([a-z]+)", README):
        assert f"\n{target}:" in makefile, target


@pytest.mark.parametrize("command", sorted(set(re.findall(r"culture-tasks ([a-z-]+)", README))))
def test_commands_that_it_names_are_there(command):
    from culture_tasks.cli.main import build_parser

    choices = next(action.choices for action in build_parser()._actions if isinstance(action.choices, dict))
    assert command in choices
