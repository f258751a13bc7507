"""One exception tree, and hints that name the nearest spelling."""

import inspect

import pytest

from culture_tasks import errors


def test_every_error_is_one_of_ours():
    classes = [each for _, each in inspect.getmembers(errors, inspect.isclass) if each.__module__ == errors.__name__]
    assert len(classes) >= 8
    assert all(issubclass(each, errors.CultureTasksError) for each in classes)
    assert all(each.__name__ in errors.__doc__ for each in classes)


@pytest.mark.parametrize(
    ("error", "base"),
    [
        (errors.DataUnavailableError, errors.DataError),
        (errors.JudgeNotConfiguredError, errors.JudgeError),
        (errors.JudgeUnreachableError, errors.JudgeError),
    ],
)
def test_special_errors_can_be_caught_as_general_ones(error, base):
    assert issubclass(error, base)


def test_a_missing_extra_gives_the_install_command():
    said = str(errors.MissingExtraError("llava_hf", "decord", "video"))
    assert said == (
        "llava_hf needs the package 'decord', which is not installed. "
        "Install it with: pip install 'culture-tasks[video]'"
    )


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("lexcal", " Did you mean 'lexical'?"),
        ("zzz", ""),
        ("", ""),
        ("LEXICAL", ""),
        ("lexical", " Did you mean 'lexical'?"),
    ],
)
def test_the_nearest_name_is_offered_or_nothing(name, hint):
    assert errors.nearest(name, iter(["openai", "lexical"])) == hint


def test_nothing_is_near_among_no_names():
    assert errors.nearest("x", []) == ""
