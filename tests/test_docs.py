"""The pages say what is so: what they name exists, generated parts are fresh, and links lead somewhere."""

from __future__ import annotations

import importlib
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = {str(page.relative_to(ROOT)): page.read_text("utf-8") for page in PAGES}
HARNESSES, CONTRIBUTING = TEXTS["docs/harnesses.md"], TEXTS["CONTRIBUTING.md"]

# A dotted name in backticks that begins with a harness, such as `lm_eval.api.model.LM`.
NAMES = sorted(set(re.findall(r"`((?:lm|lmms)_eval(?:\.\w+)+)`", HARNESSES)))

# A path in backticks: it has a slash and ends like a file. Folders of the package may leave `culture_tasks/` out.
PATHS = sorted(set(re.findall(r"`([\w.]+(?:/[\w.-]+)+\.(?:py|md|toml))`", HARNESSES + CONTRIBUTING)))

# What stands in code: a block between fences, or a span between backticks.
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_page_names_is_in_the_installed_harness(name):
    parts = name.split(".")
    found = importlib.import_module(parts[0])
    for place, part in enumerate(parts[1:], start=2):
        if not hasattr(found, part):
            importlib.import_module(".".join(parts[:place]))
        found = getattr(found, part)


def test_pages_name_files_of_this_repository_and_the_readme_is_short():
    assert (len(NAMES) > 30, len(PATHS) > 25) == (True, True)
    assert [path for path in PATHS if not any((ROOT / top / path).is_file() for top in ("", "culture_tasks"))] == []
    assert len(TEXTS["README.md"].splitlines()) <= 150


def test_generated_parts_are_fresh_and_a_stale_page_is_named(tmp_path):
    for name in ("tools", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "README.md", tmp_path / "README.md")
    page = tmp_path / "docs" / "settings.md"
    page.write_text(re.sub(r"\| `CULTURE_JUDGE` \|.*\n", "", TEXTS["docs/settings.md"], count=1), encoding="utf-8")
    command = [sys.executable, str(tmp_path / "tools" / "docs.py")]
    done = subprocess.run([*command, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "Stale: docs/settings.md. Run `make docs`.\n")
    docs = runpy.run_path(command[-1])
    assert docs["renewed"](page, page.read_text("utf-8")) == TEXTS["docs/settings.md"]


@pytest.mark.parametrize("page", TEXTS)
def test_make_targets_and_commands_that_a_page_names_are_there(page):
    from culture_tasks.cli.main import build_parser

    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = next(action.choices for action in build_parser("")._actions if isinstance(action.choices, dict))
    for code in CODE.findall(TEXTS[page]):
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", code, re.MULTILINE):
            assert f"\n{target}:" in makefile, target
        for command in re.findall(r"culture-tasks (?:-v )?([a-z][a-z-]*)", code):
            assert command in commands, code


def test_every_benchmark_has_its_page():
    from culture_tasks.benchmarks.registry import benchmarks

    assert {f"docs/benchmarks/{name}.md" for name in benchmarks()} <= TEXTS.keys()


def test_pictures_are_small_and_shown_and_pages_show_no_other():
    shown = {name for text in TEXTS.values() for name in re.findall(r"!\[[^]]+\]\((?:docs/)?pictures/([\w.]+)\)", text)}
    files = {path.name: path.stat().st_size for path in (ROOT / "docs" / "pictures").iterdir()}
    assert shown == files.keys()
    assert max(files.values()) < 300_000


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "CULTURE_TASKS_REPO_URL": "https://example.org/culture-tasks"},
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_the_site_has_pages_from_docs_docstrings_and_the_repository(site):
    for page, text in {
        "tutorial": 'id="a-laptop"',
        "api": 'id="culture_tasks.report.building.build"',
        "contributing/a-benchmark": "class Signs",
        "changelog": "Keep a Changelog",
        "": "https://example.org/culture-tasks",
    }.items():
        html = re.sub(r"</?span[^>]*>", "", (site / page / "index.html").read_text("utf-8"))
        assert text in html
        assert re.search(r":(?:func|class|mod):|<blockquote>\s*<blockquote>", html) is None
