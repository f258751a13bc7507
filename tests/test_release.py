"""``tools/release.py``: what it sets, and what it refuses."""

from __future__ import annotations

import importlib.util
import io
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SPEC = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
release = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(release)

LOG = "# Changelog\n\n## Unreleased\n\n- Something new.\n\n## 0.1.0 (2026-01-01)\n\n- All.\n"


def commit(root):
    as_somebody = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], [*as_somebody, "commit", "-qm", "x"]):
        subprocess.run(["git", *arguments], cwd=root, check=True)


@pytest.fixture
def project(tmp_path):
    (tmp_path / "culture_tasks").mkdir()
    (tmp_path / "culture_tasks" / "__init__.py").write_text('"""Text."""\n\n__version__ = "0.1.0"\n', encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text(LOG, encoding="utf-8")
    commit(tmp_path)
    return tmp_path


def test_a_cut_sets_the_version_and_numbers_the_latest_section(project):
    (project / "more").touch()
    with pytest.raises(SystemExit, match="changes that aren't committed"):
        release.cut(project, "0.2.0")
    (project / "more").unlink()
    release.cut(project, "0.2.0")
    assert release.version(project) == "0.2.0"
    beginning, number, rest = (project / "CHANGELOG.md").read_text(encoding="utf-8").partition("## 0.2.0 (")
    assert (beginning, number) == ("# Changelog\n\n## Unreleased\n\n", "## 0.2.0 (")
    assert rest.endswith(")\n\n- Something new.\n\n## 0.1.0 (2026-01-01)\n\n- All.\n")


@pytest.mark.parametrize("new", ["0.1.0", "next"])
def test_what_is_no_later_version_is_refused_and_nothing_is_written(project, new):
    with pytest.raises(SystemExit, match="expected a version"):
        release.cut(project, new)
    assert release.version(project) == "0.1.0"


def test_the_check_finds_what_does_not_belong(project):
    dist = project / "dist"
    dist.mkdir()

    def wheel(*names):
        with zipfile.ZipFile(dist / "culture_tasks-0.1.0-py3-none-any.whl", "w") as archive:
            for name in names:
                archive.writestr(name, "")

    with tarfile.open(dist / "culture_tasks-0.1.0.tar.gz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("culture_tasks-0.1.0/README.md"), io.BytesIO())
    wheel("culture_tasks/__init__.py", "culture_tasks-0.1.0.dist-info/METADATA")
    release.check(project, "v0.1.0")
    with pytest.raises(SystemExit, match=r"expected v0\.1\.0"):
        release.check(project, "v0.2.0")
    wheel("tests/__init__.py", "culture_tasks/__pycache__/x.pyc")
    with pytest.raises(SystemExit, match="__pycache__"):
        release.check(project)
