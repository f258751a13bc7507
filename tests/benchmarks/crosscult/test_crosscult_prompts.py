import unicodedata

from support.papers import printed

from culture_tasks.benchmarks.crosscult.editions import PAPER
from culture_tasks.benchmarks.crosscult.rubrics import CROSSCULT
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.prompt_files import load

ARABIC_SHAPES = str.maketrans({"ی": "ي"})  # the paper's font writes the letter yeh with Farsi code points


def words(text):
    return "".join(unicodedata.normalize("NFKC", text).split())


def test_system_prompts_are_those_of_figure_9():
    lines = printed("crosscult", "figure_9").splitlines()
    assert {f"English {PAPER['en'].system_prompt}", f"Chinese {PAPER['zh'].system_prompt}"} <= set(lines)


def test_the_arabic_prompt_is_figure_9_in_logical_order():
    lines = printed("crosscult", "figure_9").splitlines()
    visual = next(line for line in lines if line.startswith("Arabic ")).removeprefix("Arabic ")
    logical = unicodedata.normalize("NFC", visual[::-1]).translate(ARABIC_SHAPES)
    ours = PAPER["ar"].system_prompt
    assert sorted(words(ours)) == sorted(words(logical))
    differing = [(one, other) for one, other in zip(ours.split(), logical.split(), strict=True) if one != other]
    assert differing in ([], [("الإجابة", "اإلجابة")])  # the ligature lam-alef is turned around as one character
    assert ours.endswith(".")
    assert ours[0] == "ي"


def test_the_judge_s_prompt_is_figure_10_byte_for_byte():
    system, user = (load(CROSSCULT.package, name).text for name in ("crosscult_system.v1", "crosscult_user.v1"))
    assert f"System:\n{system}\n\nUser:\n{user}\n" == printed("crosscult", "figure_10")


def test_the_judge_is_the_paper_s_and_told_language_question_reference_and_candidate():
    assert (CROSSCULT.model, CROSSCULT.lowest, CROSSCULT.highest) == ("gpt-5.4-mini", 0, 10)
    own = {name: value for name, value in CROSSCULT.sampling.items() if name != "response_format"}
    assert own == {"temperature": 0.0, "max_tokens": 256, "reasoning_effort": "none"}
    item = JudgeItem("Is it {language}?", ("Yes.",), "No {question}.", "Arabic")
    system, user = CROSSCULT.messages(item, delimiters=False)
    assert system["role"] == "system"
    assert user["content"].startswith(
        "Language: Arabic\nQuestion: Is it {language}?\nReference answer: Yes.\nCandidate answer: No {question}.\n\n"
    )
    assert '{"score": <0-10 integer>, "reason": "<short reason>"}' in user["content"]
