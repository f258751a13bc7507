"""Install commands, and hints that name the nearest spelling."""

from culture_tasks import errors


def test_a_missing_extra_gives_the_install_command():
    assert str(errors.MissingExtraError("llava_hf", "decord", "video")) == (
        "llava_hf needs the package 'decord', which is not installed. "
        "Install it with: pip install 'culture-tasks[video]'"
    )


def test_the_nearest_name_is_offered_or_nothing():
    hints = {name: errors.nearest(name, iter(["openai", "lexical"])) for name in ("lexcal", "zzz", "", "LEXICAL")}
    assert hints == {"lexcal": " Did you mean 'lexical'?", "zzz": "", "": "", "LEXICAL": ""}
    assert errors.nearest("x", []) == ""
