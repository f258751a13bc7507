"""Wheel, sdist and editable installs hold every task file, template, prompt and data file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LINKS = {"judges": "culture_tasks/judges", "task_yamls": "culture_tasks/task_yamls"}
FOLDERS = {"culture_tasks": "culture_tasks", **LINKS}
IGNORED = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def expected() -> set[str]:
    """Returns every file of the three folders, where an installation has it."""
    return {  # rglob doesn't follow links: each file comes from its own folder
        f"{target}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, target in FOLDERS.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc" and not path.name.startswith(".")
    }


@pytest.fixture
def source(tmp_path) -> Path:
    """A copy of what is built, so that nothing is written to the checkout and no old build/ gets in."""
    copy = tmp_path / "source"
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True, ignore=IGNORED)
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    (copy / "tests").mkdir()
    (copy / "tests" / "test_stray.py").touch()  # setuptools takes such files unless it is told not to
    return copy


def run(*arguments, cwd, code=0, **variables):
    environment = {**os.environ, **variables}
    done = subprocess.run(arguments, cwd=cwd, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == code, done.stdout[-3000:] + done.stderr[-3000:]
    return done


def build(kind: str, folder: Path, cwd: Path, code: int = 0):
    """Builds a wheel or an sdist into a folder, as pip does."""
    call = f"import sys; from setuptools import build_meta; build_meta.build_{kind}(sys.argv[1])"
    return run(sys.executable, "-c", call, str(folder), cwd=cwd, code=code)


@pytest.mark.slow
def test_the_sdist_builds_a_wheel_that_holds_every_file_and_no_other_and_works_away_from_the_checkout(source, tmp_path):
    build("sdist", tmp_path, cwd=source)
    (path,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        assert len(archive.getnames()) == len(set(archive.getnames()))
        assert not [name for name in archive.getnames() if "tests" in name.split("/")]
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    build("wheel", tmp_path, cwd=unpacked)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = [name for name in archive.namelist() if ".dist-info/" not in name]
        (prefix,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        points = archive.read(f"{prefix}/entry_points.txt").decode()
        assert archive.read(f"{prefix}/top_level.txt").decode().split() == ["culture_tasks"]
        archive.extractall(tmp_path / "site")
    assert sorted(held) == sorted(expected())
    assert "culture-tasks = culture_tasks.cli.main:main" in points
    assert "[lm_eval.tasks]\nculture_tasks = culture_tasks.task_yamls.lm_eval" in points
    assert "[lmms_eval.models]\nculture_tasks = culture_tasks.harness.lmms_eval.plugin:register" in points
    code = (
        "from culture_tasks.benchmarks.registry import entries, in_harness, rubrics, task_folder;"
        "from culture_tasks.judges.rubric.verdicts import JudgeItem;"
        "[rubric.messages(JudgeItem('q', ('a',), 'r')) for rubric in rubrics().values()];"
        "assert all(any(in_harness(e, h) for h in ('lm_eval', 'lmms_eval')) for e in entries().values());"
        "print(task_folder('lm_eval'))"
    )
    # -S leaves the editable install's hook out; the libraries come by path
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    path = os.pathsep.join([str(tmp_path / "site"), *libraries])
    folder = run(sys.executable, "-S", "-c", code, cwd=tmp_path, PYTHONPATH=path).stdout.strip()
    assert Path(folder) == tmp_path / "site" / "culture_tasks" / "task_yamls" / "lm_eval"


@pytest.mark.slow
def test_a_copy_without_links_is_not_built(source, tmp_path):
    """Git on Windows and some tools that unpack archives write a file in a link's place."""
    link = source / LINKS["judges"]
    link.unlink()
    link.write_text("../judges", encoding="utf-8")
    done = build("wheel", tmp_path, cwd=source, code=1)
    assert "culture_tasks/judges isn't a link to the folder judges" in done.stderr
