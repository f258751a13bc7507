"""``culture-tasks completion``: what shells complete with the scripts that it prints."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from culture_tasks.cli.main import main

ROOT = Path(__file__).resolve().parents[2]

COMPLETE = """
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_shtab_culture_tasks 2>/dev/null
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scripts")

    def script(shell, capsys):
        path = folder / shell
        if not path.exists():
            assert main(["completion", shell]) == 0
            path.write_text(capsys.readouterr().out, encoding="utf-8")
        return path

    return script


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("comp", {"compare", "completion"}),
        ("report --samples", {"--samples-per-cell"}),
        ("report READ", {"README.md"}),
        ("merge x -o tes", {"tests"}),
        ("data check cultural", {"culturalbench", "culturalvqa"}),
        ("cost --tasks crosscult_retention_en_zh_ar_ar", {"crosscult_retention_en_zh_ar_ar_after_3"}),
        ("cache export --", {"--help", "--file", "--output"}),
    ],
)
def test_bash_completes_commands_options_names_and_files(scripts, capsys, typed, offered):
    call = ["bash", "--norc", "-c", COMPLETE, "complete", str(scripts("bash", capsys)), "culture-tasks", *typed.split()]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert set(done.stdout.split()) == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_can_read_their_script(scripts, capsys, shell):
    script = scripts(shell, capsys)
    assert "culture-tasks" in script.read_text(encoding="utf-8")
    if program := shutil.which(shell):
        subprocess.run([program, "-n", str(script)], timeout=60, check=True)
