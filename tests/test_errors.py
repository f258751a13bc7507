"""One exception tree, and hints that name the nearest spelling."""

import inspect

from culture_tasks import errors


def test_every_error_is_one_of_ours():
    classes = [each for _, each in inspect.getmembers(errors, inspect.isclass) if each.__module__ == errors.__name__]
    assert len(classes) >= 8
    assert issubclass(errors.DataUnavailableError, errors.DataError)
    assert issubclass(errors.JudgeNotConfiguredError, errors.JudgeError)
    assert all(issubclass(each, errors.CultureTasksError) for each in classes)


def test_a_missing_extra_gives_the_install_command():
    assert str(errors.MissingExtraError("llava_hf", "decord", "video")) == (
        "llava_hf needs the package 'decord', which is not installed. "
        "Install it with: pip install 'culture-tasks[video]'"
    )


def test_the_nearest_name_is_offered_or_nothing():
    hints = {name: errors.nearest(name, iter(["openai", "lexical"])) for name in ("lexcal", "zzz", "", "LEXICAL")}
    assert hints == {"lexcal": " Did you mean 'lexical'?", "zzz": "", "": "", "LEXICAL": ""}
    assert errors.nearest("x", []) == ""
