import pytest

from culture_tasks.agreement.rated_responses import language_of, language_of_script


@pytest.mark.parametrize(
    ("culture", "language"),
    [("Native (Chinese)", "zh"), ("Native (Arab)", "ar"), ("native - Japanese", "ja"), ("NATIVE(Arabic)", "ar")],
)
def test_a_native_culture_tells(culture, language):
    assert language_of("a question in no such script", culture=culture) == language


@pytest.mark.parametrize("culture", ["Foreign", "Foreign (Japanese)", "Native", "Native (Klingon)", "", None])
def test_any_other_culture_leaves_it_to_the_script(culture):
    assert language_of("قهوة وتمر", culture=culture) == "ar"


@pytest.mark.parametrize(("given", "code"), [("Chinese", "zh"), ("zh-CN", "zh"), ("JA", "ja"), ("pt_BR", "pt")])
def test_the_language_column_goes_first(given, code):
    assert language_of("قهوة", language=given, culture="Native (Arab)") == code


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("お茶はいつ飲みますか", "ja"),
        ("源氏物語の作者は誰", "ja"),
        ("端午节吃什么", "zh"),
        ("日本人说的“侘び”在中文里怎么翻译", "zh"),
        ("ما هي القهوة العربية؟", "ar"),
        ("What is tea?", "und"),
        ("What does the word 茶 mean?", "und"),
        ("12:30?", "und"),
        ("", "und"),
    ],
)
def test_scripts(text, language):
    assert language_of_script(text) == language
