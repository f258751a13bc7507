"""The reader of chosen options: a reply that chooses one is read, and everything else is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture_tasks.benchmarks.choices import read_choice
from culture_tasks.benchmarks.likelihood import most_likely
from culture_tasks.benchmarks.registry import task_named
from culture_tasks.benchmarks.worldcuisines.benchmark import options_of
from culture_tasks.settings import Settings

DRINKS = {"A": "tea", "B": "soy milk", "C": "coffee", "D": "noodle soup"}
DISHES = {"1": "Nasi Goreng", "2": "Rendang", "3": "Sate", "4": "Gado-gado", "5": "Bakso"}
ANSWERS = {"1": "Yes", "2": "No", "3": "Neither"}
TRUTH = {"True": "", "False": ""}

AROUND = [("", ""), ("The answer is ", "."), ('{"answer_choice": "', '"}')]

PLAIN = [
    "B",
    "(B)",
    "**B**",
    "Ｂ",
    "Option B",
    "Answer: B",
    "答案：Ｂ",
    "The answer is B.",
    "I would choose option B, because it is sold in the streets.",
    "B is the correct answer.",
    "B. soy milk",
    "soy milk",
    "The answer is soy milk.",
    "B. soy milk\n\nPeople there drink it warm. A common mistake is to say tea.",
    "People there like it warm, which rules out A and C.\n\nB",
    "A: tea is for guests.\nC: coffee is rare.\nSo the answer is B.",
    "A. tea\nB. soy milk\nC. coffee\nD. noodle soup\n\nAnswer: B",
    '{"answer_choice":"B"}',
    '{"answer_choice": "B"',
    '{"answer_choice": ["B"]}',
    '{"answer_choice":"B. soy milk"}',
    '{"answer_choice":"B","explanation":"Tea (A) is for guests."}',
    '```json\n{\n  "answer_choice": "B"\n}\n```',
    '{"answer_choice":""}\n{"answer_choice":"B"}',
    "<think>A, since {\"answer_choice\":\"A\"}</think>\n{\"answer_choice\":\"B\"}",
    r"Tea is for guests, so $\boxed{\text{B}}$",
    "<answer>B</answer>",
    "Tea is for guests. <answer>B</answer>",
    "<b>B</b>",
    "B<end_of_turn>",
    "B</s>",
    "B<|im_end|>\n<|im_start|>user\nAnd for lunch?<|im_end|>\n<|im_start|>assistant\nD",
    "B\n\nQuestion: Which drink?\nA. tea\nB. mate\nAnswer: A",
    "B\n\n问题：他们吃什么？\n答案：A",
    "not A but B",
    "B rather than A",
    "Choose B",
    "Definitely B.",
    "While A is possible, the correct answer is B.",
    "A: Incorrect\nB: Correct\nC: Incorrect",
    "In Taiwan, people have this for breakfast:\n\nB. soy milk",
    "A. tea\nB. soy milk\nC. coffee\nD. noodle soup\n\nB",
    "B\n\nExplanation:\nA. tea is for guests.",
    "B. Tea is for guests.",
    "The most common drink in the morning is soy milk.",
    r"\boxed{\text{soy milk}}",
    *("正确答案是B。", "B是正确答案。", "不是A，而是B。", "正解はBです。", "Bが正解です。"),
    *("정답은 B입니다.", "B가 정답입니다."),
    *("الإجابة الصحيحة هي B.", "सही उत्तर B है।", "คำตอบคือB", "Правильный ответ — B.", "Doğru cevap B'dir."),
    *("La respuesta correcta es B.", "Elijo B.", "C'est B.", "La bonne réponse est B.", "A resposta correta é B."),
    *("Die richtige Antwort ist B.", "B ist richtig.", "Jawaban yang benar adalah B.", "Đáp án đúng là B."),
    *("சரியான பதில் B ஆகும்.", "ትክክለኛው መልስ B ነው።", "პასუხი: B", "პასუხია B"),
]  # fmt: skip

NOTHING = [
    "",
    "I can't choose.",
    "None of these.",
    "A bowl of noodles",
    "D'accord",
    "The answer is Ａ bowl of rice.",
    "Either A or B is correct.",
    "I think A, but B is also correct.",
    "A or B",
    "B?",
    "The answer is A. No, the answer is B.",
    "The answer is B.\nC",
    "The answer is not B.",
    "I don't think the answer is B.",
    "The answer is B if they drink it cold.",
    "Some might say B is the correct answer.",
    "B is wrong.",
    "B (soy milk) is not right.",
    "B. soy milk isn't the answer.",
    "B. tea",
    "E",
    "A. tea\nB. soy milk\nC. coffee\nD. noodle soup",
    "Answer:\nA. tea\nB. soy milk\nC. coffee\nD. noodle soup",
    "The answer is",
    "<think>The answer is B.",
    '{"answer_choice":""}',
    '{"answer_choice":2}',
    '{"answer_choice":["A","B"]}',
    '{"answer_choice":"B. tea"}',
    '{"answer_choice":"A"} or {"answer_choice":"B"}',
    '{"answer_choice": "soy mi',
    "Soy milk is common at breakfast. It is a",
    r"the maximum is \(A\), which is large",
    "Let's look at each option:\n\nA. tea is a drink",
    "A. tea is for guests.\n\nB",
    "B\n\nTherefore, the correct answer is C.",
    "A and B are both correct.",
    "I would eliminate A.",
    "If they drink it cold, it might be B.",
    "People drink tea, soy milk and coffee.",
    "The answer is green tea.",
    "Thanks for the Q&A.",
    "Vitamin B",
    "Wait, B",
    "You must choose one of A, B, C or D.",
    *(
        "正确答案不是B。",
        "答案是A或B。",
        "正解はBではありません。",
        "정답은 B가 아닙니다.",
        "الإجابة ليست B.",
        "B गलत है।",
    ),
    *("La respuesta no es B.", "B ist falsch.", "Jawabannya bukan B.", "Правильный ответ не B.", "คำตอบไม่ใช่ B"),
]


OTHERS = [
    ("3", DISHES, "3"),
    ("Answer id: 3", DISHES, "3"),
    ("The answer is 3 because of the skewers.", DISHES, "3"),
    ("This dish is Gado-gado.", DISHES, "4"),
    ("3.5", DISHES, None),
    ("It is 3 years old.", DISHES, None),
    ("1. First, the skewers.", DISHES, None),
    ("1,2,3,4,5", DISHES, None),
    ("1. Nasi Goreng\n2. Rendang\n3. Sate", DISHES, None),
    ("Yes", ANSWERS, "1"),
    ("No, he was rude.", ANSWERS, "2"),
    ("Answer (options Yes, No or Neither): Neither", ANSWERS, "3"),
    ("No one knows.", ANSWERS, None),
    ("Not acceptable.", ANSWERS, None),
    ("True", TRUTH, "True"),
    ("This answer is **False** for this question.", TRUTH, "False"),
    ("The statement is true.", TRUTH, "True"),
    ("It is not true.", TRUTH, None),
    ("True or False", TRUTH, None),
    ("It's true that people drink it. The answer is False.", TRUTH, "False"),
    ("b", {"A": "b", "B": "tea"}, "B"),  # a letter that was offered is no text
    ("tea", {"A": "Tea", "B": "tea"}, None),
    ("tea with milk", {"A": "tea", "B": "tea with milk"}, "B"),
    ("A cup of tea", {"A": "coffee", "B": "A cup of tea"}, "B"),
    ("1) No", ANSWERS, "2"),
    ("No he should not.", ANSWERS, "2"),
    ("2) No (not at all) is not an option", ANSWERS, None),
    ("I would answer No.", ANSWERS, "2"),
    ("Based on the social norms of Egypt:\n\nYes", ANSWERS, "1"),
    ("According to the rule:\n\nYes, it is acceptable.", ANSWERS, "1"),
    ("Neither of them was rude.", ANSWERS, None),
    ("As for the claim:\nTrue", TRUTH, "True"),
    ("1. First, the skewers.\n2. Then the sauce.\n3", DISHES, None),
    ("The dish in the image is:\n1. Nasi Goreng", DISHES, "1"),
    ("答案是٣。", DISHES, "3"),
    *((f"{before}the park{after}", {"A": "the park", "B": "a park"}, "A") for before, after in AROUND),
    *((f"{before}The Pho{after}", {"A": "Pho", "B": "The Pho"}, "B") for before, after in AROUND),
    *((f"{before}a*{after}", {"A": "a*", "B": "a+"}, "A") for before, after in AROUND),
    ("B. Rice with beans", {"A": "rice", "B": "rice with beans and cheese"}, "B"),
]


def test_a_choice_is_read_and_what_chooses_nothing_or_two_things_is_not():
    cases = [*((reply, DRINKS, "B") for reply in PLAIN), *((reply, DRINKS, None) for reply in NOTHING), *OTHERS]
    assert [case for case in cases if read_choice(case[0], case[1]) != case[2]] == []


@given(st.text() | st.text("ABCDEab12 .:,()'\"{}\\\n") | st.lists(st.sampled_from([*PLAIN, *NOTHING])).map("\n".join))
def test_whatever_is_read_was_offered(reply):
    for options in (DRINKS, DISHES, TRUTH):
        assert read_choice(reply, options) in {None, *options}


@given(
    st.sampled_from(["{}", "({})", "**{}**", "{}.", "Answer: {}", "The answer is {}.", '{{"answer_choice":"{}"}}']),
    st.sampled_from(["ABCDEFGHIJ", "12345"]),
    st.integers(1, 10),
    st.data(),
)
def test_a_label_is_read_if_and_only_if_it_is_offered(template, labels, count, data):
    label = data.draw(st.sampled_from(labels))
    offered = labels[:count]
    assert read_choice(template.format(label), dict.fromkeys(offered, "")) == (label if label in offered else None)


def test_hostile_replies_are_read_in_a_moment():
    for part in ("{", "}", '{"answer_choice":', "\\W ", "A.", "<think>", "answer ", "answer is ", "A "):
        assert read_choice(part * 10_000, DRINKS) is None


@pytest.mark.parametrize(
    "task", ["culturalbench_easy", "cvqa", "cvqa_en", "worldcuisines_dish", "worldcuisines_origin", "blend_mcq"]
)
def test_every_option_of_the_bundled_data_is_read_as_itself(fixture_data, task):
    for doc in task_named(task).data.load(Settings(data=fixture_data)).rows:
        if "options" in doc:
            options = dict(zip("ABCD", doc["options"], strict=True))
        else:
            options = dict(doc["choices"]) if "choices" in doc else options_of(doc["prompt"])
        for label, text in options.items():
            if [*options.values()].count(text) == 1:
                replies = [
                    text,
                    f"{label}. {text}",
                    f"The answer is {text}.",
                    f'{{"answer": "{text}"}}',
                    f"So:\n\n{text}",
                ]
                assert [read_choice(reply, options) for reply in replies] == [label] * len(replies)


def test_special_tokens_are_no_part_of_a_choice_and_a_number_with_its_own_text_is_that_number():
    for reply in ("2<|im_end|>", "2. tea<|endoftext|>", "2. tea"):
        assert read_choice(reply, {"1": "milk", "2": "tea", "3": "tea"}) == "2"


def test_a_tie_or_a_missing_number_chooses_nothing():
    assert most_likely(["A", "B", "C"], [-3.0, -1.0, -2.0]) == "B"
    for likelihoods in ([-1.0, -1.0, -2.0], [float("nan"), -1.0, -2.0], [-1.0, float("nan"), -2.0]):
        assert most_likely(["A", "B", "C"], likelihoods) == ""
