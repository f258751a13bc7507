"""Pipes among inputs are refused and not waited for; outputs appear whole, and nothing is written through a link."""

from __future__ import annotations

import os

import pytest

from culture_tasks.cli.main import main
from culture_tasks.plain_files import write_whole, written

RESULTS = "results_2026-01-31T12-30-59.123456.json"


@pytest.mark.parametrize(
    "command",
    [
        f"report {RESULTS} -o out",
        "report . -o out",
        f"compare {RESULTS} {RESULTS}",
        f"rejudge {RESULTS} --judge lexical",
        "agreement --data pipe.jsonl --judge lexical",
        "preferences stat pipe.jsonl",
        "cache stats --file pipe.jsonl",
        "spotcheck score pipe.jsonl pipe.jsonl --results .",
        "cost --prices pipe.jsonl --tasks care_ar --judge openai:gpt-4o",
    ],
)
def test_a_pipe_among_the_inputs_is_refused_and_not_waited_for(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    os.mkfifo(RESULTS)
    os.mkfifo("pipe.jsonl")
    assert main(command.split()) in (1, 2)
    assert "not a plain file" in capsys.readouterr().err


def test_a_file_appears_whole_and_not_through_a_link(tmp_path, capfd):
    target, link, output = tmp_path / "target", tmp_path / "link", tmp_path / "output"
    target.write_text("another's")
    link.symlink_to(target)
    for path in (link, output):
        with pytest.raises(ZeroDivisionError), written(path) as file:
            file.write(str(1 / 0))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "target"]
    for path in (link, output, output):
        write_whole(path, "ours\r\n\ud83c")
        assert path.read_bytes() == b"ours\r\n\\ud83c"
    assert (target.read_text(), link.is_symlink()) == ("another's", False)
    write_whole(type(target)("/dev/stdout"), "said")  # which is no place for a new file
    assert capfd.readouterr().out == "said"
