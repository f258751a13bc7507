"""The command ``culture-tasks``: arguments, exit statuses, and errors without a traceback."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import culture_tasks
from culture_tasks.cli import main as command
from culture_tasks.cli.main import main
from culture_tasks.errors import DataError, SettingsError

CULTURE_TASKS = [sys.executable, "-m", "culture_tasks.cli.main"]


def failing(error):
    def handler(_):
        raise error

    return lambda add_parser: add_parser().set_defaults(handler=handler)


def test_an_error_of_ours_is_one_line_and_exit_status_1_and_a_bug_keeps_its_traceback(monkeypatch, capsys):
    monkeypatch.setattr(command, "_COMMANDS", {"fail": ("fail:register", "fails")})
    for error in (DataError("x.json, row 3: broken"), SettingsError("CULTURE_JUDGE: unknown")):
        monkeypatch.setattr(command.pkgutil, "resolve_name", lambda _, error=error: failing(error))
        assert main(["fail"]) == 1
        assert capsys.readouterr() == ("", f"culture-tasks: error: {error}\n")
    monkeypatch.setattr(command.pkgutil, "resolve_name", lambda _: failing(KeyboardInterrupt()))
    assert main(["fail"]) == 130
    assert capsys.readouterr() == ("", "culture-tasks: interrupted\n")
    monkeypatch.setattr(command.pkgutil, "resolve_name", lambda _: failing(KeyError("bug")))
    with pytest.raises(KeyError):
        main(["fail"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["taks"], "invalid choice: 'taks'"),
        ([], "the following arguments are required: COMMAND"),
        (["include-path", "helm"], "invalid choice: 'helm'"),
    ],
)
def test_a_command_line_that_is_wrong_ends_with_2_and_the_usage(capsys, arguments, said):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith("usage: culture-tasks")
    assert said in err


def test_the_help_has_every_command_and_imports_none(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"culture-tasks {culture_tasks.__version__}\n"
    code = "import sys; from culture_tasks.cli.main import main; sys.exit(main(['--help']))"
    importing = [sys.executable, "-X", "importtime", "-c", code]
    listed = subprocess.run(importing, capture_output=True, text=True, check=True)
    assert not any(name in listed.stderr for name in ("numpy", "pydantic", "culture_tasks.benchmarks"))
    for text in (listed.stdout, command.build_parser().format_help()):
        lines = " ".join(text.partition("COMMAND\n")[2].split())
        assert all(f"{name} {what}" in lines for name, (_, what) in command._COMMANDS.items())


def test_each_help_fits_on_a_screen(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    for name, _, parser in command.all_commands(command.build_parser()):
        assert len(parser.format_help().splitlines()) <= 40, name


def test_a_reader_that_goes_away_is_no_error_and_a_terminal_without_unicode_neither():
    read, write = os.pipe()
    os.close(read)
    without_unicode = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    for output, options, environment in ((write, ["--json"], os.environ), (subprocess.DEVNULL, [], without_unicode)):
        call, how = [*CULTURE_TASKS, "tasks", *options], {"stdout": output, "stderr": subprocess.PIPE, "text": True}
        done = subprocess.run(call, env=environment, **how, timeout=120, check=False)
        assert (done.returncode, done.stderr) == (0, "")
    os.close(write)
