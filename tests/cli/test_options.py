"""Options that are spelt alike in all commands: either spelling, lists of tasks, JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from culture_tasks.cli.main import all_commands, build_parser
from culture_tasks.cli.options import Parser, print_json
from culture_tasks.rejudge.estimates import Bounds


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        ("insertion fit --method m --model x -o out --batch_size 4", "batch_size", 4),
        ("insertion fit --method m --model x --out there", "output", Path("there")),
        ("cache merge a b --out m_n", "output", Path("m_n")),
        ("report r --output o --trained_on x=d", "trained_on", ["x=d"]),
        ("cost --tasks a,b --tasks c", "tasks", ("a", "b", "c")),
        ("lm-eval run --model_args a_b=1", "arguments", ["run", "--model_args", "a_b=1"]),
    ],
)
def test_an_option_goes_by_either_spelling(words, name, value):
    command, *arguments = words.split()
    assert getattr(build_parser(command).parse_args([command, *arguments]), name) == value


def test_words_after_two_hyphens_and_values_stay_as_they_are():
    parser = Parser()
    parser.add_argument("--batch-size")
    parser.add_argument("rest", nargs="*")
    given = vars(parser.parse_args(["--batch_size", "a_b", "--", "--batch_size"]))
    assert given == {"batch_size": "a_b", "rest": ["--batch_size"]}


def test_options_of_one_meaning_have_one_name():
    parsers = [parser for _, _, parser in all_commands(build_parser())]
    options = {flag for parser in parsers for flag in parser._option_string_actions}
    assert not options & {"--out", "--into", "--task", "--pretrained"}
    assert not [flag for flag in options if "_" in flag]
    for parser in parsers:
        actions = parser._option_string_actions
        assert actions.get("-o") is actions.get("--output"), parser.prog
        assert "--tasks" not in actions or actions["--tasks"].metavar == "LIST", parser.prog


def test_json_has_no_nan_no_lone_surrogate_and_nothing_that_acts_on_a_terminal(capsys):
    print_json({"scores": [Bounds(math.nan, 1.0)], "path": Path("a\udc80\x9b\u202e中")})
    out = capsys.readouterr().out
    assert json.loads(out) == {"scores": [{"low": None, "high": 1.0}], "path": "a\ufffd\x9b\u202e中"}
    assert "a\ufffd\\u009b\\u202e中" in out
