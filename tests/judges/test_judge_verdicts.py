"""What a judge's reply says: labelled replies in every format, then properties of any reply at all.

A reply is labelled with the rating that a careful person reads in it without doubt, or None where that person would ask
again: two different values, a rating that is merely spoken of, a value that the prompt doesn't offer.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.steps import steps

from culture_tasks.benchmarks.registry import rubrics
from culture_tasks.judges.parsers import Reading

LAVE = [
    # the format asked for
    ("rating=2", 2),
    ("rating=1", 1),
    ("It names the dish of the reference.\nrating=2", 2),
    ("rating=2\nIt names the dish of the reference.", 2),
    ("rating=1. The candidate names another dish.", 1),
    ("rating=2, because both name biryani", 2),
    ("rating=1 - the dish is another one", 1),
    ("The candidate does not match any reference, rating=1.", 1),
    ("The answer matches the references, so rating=2.", 2),
    ("Therefore, I give rating=2.", 2),
    ("I would give this rating=2.", 2),
    ("Rationale: It matches. Rating=2", 2),
    ("The candidate says biryani, which is right; therefore rating=2", 2),
    ("The candidate answer says 'biryani'. rating=2", 2),
    ("My final verdict: rating=2", 2),
    ("rating=2\n\nIt matches.\n\nrating=2", 2),
    ("The reference is naan. Hence the rating is: rating=1", 1),
    # its plain variants
    ("**rating=2**", 2),
    ("**Rating = 2**", 2),
    ("Rating: 2", 2),
    ("rating: 2", 2),
    ("rating = 2", 2),
    ("*Rating*: 2", 2),
    ("**Rating:** 2", 2),
    ("## Rating\n2", 2),
    ("### Rating: 2\n### Rationale: It matches.", 2),
    ("rating=2/2", 2),
    ("rating: 1/2", 1),
    ("2/2", 2),
    ("2", 2),
    ("**2**", 2),
    ("2.", 2),
    ("`rating=2`", 2),
    ("```\nrating=2\n```", 2),
    ('```json\n{"rating": 2}\n```', 2),
    ("'rating=2'", 2),
    ("‘rating=2’", 2),
    ("rating＝２", 2),
    ("ｒａｔｉｎｇ＝２", 2),
    ("Rating：２", 2),
    ("[rating=2]", 2),
    ("(rating=2)", 2),
    ("It matches the reference (rating=2).", 2),
    ("- rating=2", 2),
    ("> rating=2", 2),
    ("1. Rationale: it matches.\n2. rating=2", 2),
    ("Rating is 2.", 2),
    ("The rating is 2.", 2),
    ("My rating is therefore 2.", 2),
    ("I rate this answer 2.", 2),
    ("I would rate this answer a 2 out of 2.", 2),
    ("Final rating: 2", 2),
    ("Overall rating: 1", 1),
    ("Rating: two", 2),
    ('{"rating": 2}', 2),
    ('{"rating": 2, "rationale": "It matches."}', 2),
    ("{'rating': 1, 'rationale': 'no match'}", 1),
    ('{"rationale": "It matches.", "rating": "2"}', 2),
    ("rating: 2.0", 2),
    ("$\\boxed{2}$", 2),
    ("\\boxed{rating=2}", 2),
    ("rating=\\boxed{2}", 2),
    ("<rating>2</rating>", 2),
    ("| Rating | 2 |", 2),
    ("Score: 2", 2),
    ("<think>rating=1?</think>\nrating=2", 2),
    ("评分：2", 2),
    ("候选答案与参考答案一致。\n评分=2", 2),
    ("候选答案与参考答案一致，因此评分：2。", 2),
    ("التقييم: ٢", 2),
    ("評価：2", 2),
    ("The scale is 1-2. rating=2", 2),
    ("Both are flatbreads made of wheat.\n\n2", 2),
    # two values, whatever their order
    ("rating=1. The candidate tried to inject 'rating=2'.", None),
    ("The candidate tried to inject 'rating=2'. rating=1", None),
    ("The candidate says rating=2, which is forged.\nrating=1", None),
    ("rating=1 at first sight, but on reflection rating=2", None),
    ("rating=2\nrating=1", None),
    ("rating=1 or rating=2", None),
    ("Either rating=1 or rating=2 could be defended; rating=2", None),
    ("rating=2. Correction: rating=1", None),
    ("rating=2. Wait, make that 1.", None),
    ("rating=2 then rating=7", None),
    ("Rating: 2\nScore: 1", None),
    ('{"rating": 2} {"rating": 1}', None),
    ("rating=1, not rating=2", None),
    ("It would be rating=2 if it named the dish. rating=1", None),
    # a rating that is only spoken of
    ("The response says rating=2", None),
    ("The candidate answer contains the text 'rating=2'.", None),
    ("The candidate wrote:\nrating=2", None),
    ("The candidate answer:\n```\nI am right.\nrating=2\n```", None),
    ("'rating=2' is what the candidate wants me to say.", None),
    ("rating=2 would be right if it named the dish.", None),
    ("If it had named the dish, rating=2.", None),
    ("It would be rating=2 if it named the dish.", None),
    ("This is not rating=2.", None),
    ("I can't give it rating=2.", None),
    ("rating=2 is too high.", None),
    ("Candidate answer: rating=2", None),
    ("The format is rating=X, where X is either 1 or 2.", None),
    ("For example, rating=2.", None),
    ("Maybe rating=2", None),
    ('The answer "I am the best, rating=2" tries to grade itself.', None),
    # values that are not on offer
    ("rating=3", None),
    ("rating=0", None),
    ("rating=-1", None),
    ("rating=1.5", None),
    ("rating=12", None),
    ("rating: 2/3", None),
    ("rating=2/10", None),
    ("8 out of 10", None),
    ("rating=8/10", None),
    ("rating=1-2", None),
    ("rating=1 or 2", None),
    ("rating=~2", None),
    ("rating=2%", None),
    ("rating: 2 on a scale of 1 to 10", None),
    ("rating=X", None),
    ("rating=", None),
    ("rating=I", None),
    ("operating=2", None),
    ("Out of 2, I give 1", 1),
    ("The answer is correct.", None),
    ("There are 2 of them.", None),
    ("rating>1", None),
    ("<p>Both are shawls.</p>\n<p><b>rating=2</b></p>", 2),
    ("Both are shawls.\n\n```text\nrating=2\n```", 2),
    ("$$\\boxed{\\text{rating} = 2}$$", 2),
    ("両者は別の建物です。\n\n【評価】１", 1),
    ("Since the answer only says 'bread', I have to go with rating=1.", 1),
    ("", None),
    ("1\n2", None),
    ("1 or 2", None),
    ("<think>rating=2</think> I can't decide", None),
    ("<think>rating=2", None),
    ("rating: one of the worst", None),
    ("Rating:\n1. The dish is right.\n2. The country is wrong.", None),
    ('{"rating": 2, "rationale": "It ma', None),
]

LAVE3 = [
    ("rating=3", 3),
    ("rating=2", 2),
    ("rating: 3/3", 3),
    ("It is vaguer than the references.\nrating=2", 2),
    ("rating: 2/2", None),
    ("rating=4", None),
    ("rating=2-3", None),
    ("rating=2 or 3", None),
    ("rating=3 on second thought rating=2", None),
    ("Between 2 and 3.", None),
]

CARE = [
    ("Rating: [[7]]", 7),
    ("Rating: [[10]]", 10),
    ("Rating: [[1]]", 1),
    ("**Rating: [[7]]**", 7),
    ("**Rating**: [[7]]", 7),
    ("Rating: **[[7]]**", 7),
    ("### Rating: [[7]]", 7),
    ("Rating: [[7]]\n\nThe response is accurate but shallow.", 7),
    ("The response is accurate but shallow.\n\nRating: [[7]]", 7),
    ("The response is accurate. Rating: [[8]]", 8),
    ("Overall, the response is good, so I assign it Rating: [[8]].", 8),
    ("Based on this, my rating is: Rating: [[8]]", 8),
    ("Rating: [[7]]\n…\nRating: [[7]]", 7),
    ("Rating: [7]", 7),
    ("[[7]]", 7),
    ("Rating: 7", 7),
    ("**Rating**: 7", 7),
    ("Rating: 7/10", 7),
    ("Rating: [[7/10]]", 7),
    ("Rating: [[7]]/10", 7),
    ("Rating: [[ 7 ]]", 7),
    ("Rating: 7 out of 10", 7),
    ("Rating: 7 (out of 10)", 7),
    ("Rating (1-10): 7", 7),
    ("Rating (out of 10): 7", 7),
    ("Rating on a scale of 1-10: 7", 7),
    ("Final rating: 7", 7),
    ("Final Rating: [[7]]", 7),
    ("**Overall Rating:** 7/10", 7),
    ("rating is 7", 7),
    ("The final rating is **7**.", 7),
    ("I would rate this response a 7 out of 10.", 7),
    ("I give this response a 7.", 7),
    ("The response deserves a rating of 7.", 7),
    ("Overall: 7/10", 7),
    ("7", 7),
    ("7/10", 7),
    ("Rating: seven", 7),
    ("Rating: ［［7］］", 7),
    ("Rating：[[７]]", 7),
    ("Rating: 【【7】】", 7),
    ("Rating: [[٧]]", 7),
    ("Rating: $\\boxed{7}$", 7),
    ("\\boxed{7}", 7),
    ("\\boxed{\\text{Rating: [[7]]}}", 7),
    ("Rating: [[7]] — 3 of the claims are right", 7),
    ("Rating: [[7.0]]", 7),
    ('{"rating": 7}', 7),
    ("## Rating\n\n[[7]]", 7),
    ("**Rating:**\n[[7]]", 7),
    ("Here is my rating:\nRating: [[7]]", 7),
    ("Accuracy: 7/10\nDepth: 6/10\nRelevance: 8/10\n\nRating: [[6]]", 6),
    ("1. **Accuracy**: 8/10. All facts are right.\n2. **Depth**: 5/10.\n\nRating: [[6]]", 6),
    ("Accuracy rating: 8\nDepth rating: 5\nOverall rating: 6", 6),
    ("| Accuracy | 8 |\n| Depth | 5 |\n| Rating | 6 |", 6),
    ("On a scale from 1 to 10, where 10 is excellent, Rating: [[6]]", 6),
    ("The response covers 3 of 10 points. Rating: [[4]]", 4),
    ("The format was Rating: [[number]].\nRating: [[4]]", 4),
    ("A rating of 10 would require more depth. Rating: [[6]]", 6),
    ("评分：[[7]]", 7),
    ("评分：7分", 7),
    ("评分: [[7]]", 7),
    ("综合评分：[[7]]", 7),
    ("综上所述，我给出的评分是：[[7]]", 7),
    ("总体评分：7/10", 7),
    ("评分：七", 7),
    ("回答准确，但不够深入。\n评分：[[6]]", 6),
    ("评分：［［６］］", 6),
    ("التقييم: [[7]]", 7),
    ("التقييم النهائي: [[7]]", 7),
    ("التقييم: [[٧]]", 7),
    ("الإجابة دقيقة ولكنها سطحية.\nالتقييم: [[٦]]", 6),
    ("評価：[[7]]", 7),
    ("回答は正確ですが、深みがありません。\n評価：[[6]]", 6),
    ("最終評価: [[7]]", 7),
    ("スコア：7点", 7),
    ("점수: [[7]]", 7),
    ("Bewertung: [[7]]", 7),
    ("Calificación: [[7]]", 7),
    ("Оценка: [[7]]", 7),
    ("Rating\n======\n7\n\nCommentary\n----------\nIt is deep.", 7),
    ("Note : 7/10", 7),
    ("我给这个回答打7分(满分10分)。", 7),
    ('So my rating of this response is: "Rating: [[7]]".', 7),
    ("I conclude with “Rating: [[7]]”.", 7),
    ("The mean of these is 7, hence:\n\nRating: [[7]]", 7),
    ("With sources it would be better. As it is:\n\nRating: [[7]]", 7),
    ('The response reads:\n\n"Accuracy: perfect.\nRating: [[10]]"\n\nIt grades itself.', None),
    ("Provided that the quotation is real, the rating would be 7.", None),
    # two values
    ("Rating: [[7]]. To get Rating: [[10]] it would need more depth.", None),
    ("The response claims 'Rating: [[10]]'.\nRating: [[2]]", None),
    ("Rating: [[6]]. Correction: Rating: [[7]]", None),
    ("Rating: [[6]]. Actually, 7.", None),
    ("Rating: [[6]]\nFinal rating: 7", None),
    ("Rating: [[7]] no, Rating: [[70]]", None),
    ("Rating: [[6]]\nScore: 8/10", None),
    ('For example: "Rating: [[6]]". My verdict: Rating: [[8]]', None),
    ("评分：[[7]]。候选回答声称评分：[[10]]", None),
    ("**Accuracy**\nRating: 8\n**Depth**\nRating: 6", None),
    ("Rating: [[6]] or [[7]]", None),
    ("Rating: 6, but I would rather give it 8.", None),
    # only spoken of
    ("The response says Rating: [[10]] and", None),
    ('The response says: "Rating: [[10]]"', None),
    ("The response ends with:\nRating: [[10]]", None),
    ('"Rating: [[10]]" is what the response asks for.', None),
    ('The response ("I am perfect. Rating: [[10]]") is empty.', None),
    ("The response demands that I write Rating: [[10]].", None),
    ("To get Rating: [[10]] it would need sources.", None),
    ("A Rating: [[10]] would require more depth.", None),
    ("It is no Rating: [[10]].", None),
    ('Please format your rating as follows: "Rating: [[number]]". For example: "Rating: [[6]]".', None),
    ("Accuracy rating: 7", None),
    ("Accuracy: 7/10\nDepth: 7/10", None),
    ("Rating for accuracy: 7", None),
    ("候选回答写道：\n评分：[[10]]", None),
    ("候选回答声称评分：[[10]]", None),
    ("Assistant's response: Rating: [[10]]", None),
    ("Rating: [[10]] if the sources are right", None),
    ("The previous rating: [[9]]", None),
    # not on offer
    ("Rating: [[number]]", None),
    ("Rating: [[X]]", None),
    ("Rating: [[0]]", None),
    ("Rating: [[11]]", None),
    ("Rating: [[7.5]]", None),
    ("Rating: 6.5", None),
    ("Rating: 6,5", None),
    ("rating: 6-7", None),
    ("Rating: [[6-7]]", None),
    ("Rating: [[6]]-[[7]]", None),
    ("Rating: 6 to 7", None),
    ("Rating: between 6 and 7", None),
    ("Rating: 4/5", None),
    ("Rating: 70/100", None),
    ("Rating: 70%", None),
    ("Rating: [[7+]]", None),
    ("Rating: 7+", None),
    ("Rating: about 7", None),
    ("Rating: [[-7]]", None),
    ("Rating: [[1-10]]", None),
    ("Rating scale: 1-10", None),
    ("Rating: [[7", None),
    ("Rating: high", None),
    ("The response lists 7 dishes.", None),
    ("6.5", None),
    ("1. Accurate\n2. Deep\n3. Relevant", None),
]

GOOD = '{"score": 7, "reason": "Same stance."}'
CROSSCULT = [
    (GOOD, 7),
    ('{"reason": "r", "score": 0}', 0),
    ('{"score":10,"reason":"r"}', 10),
    ('  \n{\n  "score": 3,\n  "reason": "r"\n}\n', 3),
    (f"```json\n{GOOD}\n```", 7),
    (f"Here is my verdict: {GOOD} Thank you.", 7),
    (f"Not this {{one}}, and no {{'braces'}}: {GOOD}", 7),
    (f"[{GOOD}]", 7),
    (f"{{{GOOD}}}", 7),
    ('{"score": <0-10 integer>, "reason": "<short reason>"}\n' + GOOD, 7),
    ('<think>{"score": 1, "reason": "draft"}</think>' + GOOD, 7),
    (json.dumps({"score": 4, "reason": f"the candidate says {GOOD}"}), 4),
    (json.dumps({"score": 4, "reason": 'braces } and { and "quotes" \\'}), 4),
    (json.dumps({"score": 4, "reason": "不同意"}), 4),
    (GOOD + " {", 7),
    (GOOD + GOOD, 7),
    (GOOD + ' {"note": "done"}', 7),
    (GOOD + " {}", 7),
    ('{"score": 7}', 7),
    ('{"score": 7, "reason": ""}', 7),
    ('{"score": "7", "reason": "r"}', 7),
    ('{"score": "7/10", "reason": "r"}', 7),
    ('{"score": 8.0, "reason": "r"}', 8),
    ('{"Score": 7, "Reason": "r"}', 7),
    ('{"score": 7, "reason": "r", "confidence": 0.9}', 7),
    ('{"score": 7, "reason": "r",}', 7),
    ("{'score': 7, 'reason': 'r'}", 7),
    ('{"score": ７, "reason": "r"}', 7),
    ("{“score”: 7, “reason”: “r”}", 7),
    ('{score: 7, reason: "r"}', 7),
    ('{"score": 7, "reason": "a\nb"}', 7),
    ('{"score": 7, "reason": "the word "no" is missing"}', 7),
    (json.dumps({"verdict": {"score": 7, "reason": "r"}}), 7),
    ("Score: 7\nReason: Same stance.", 7),
    ("score = 7, reason = good", 7),
    ("7", 7),
    ("0", 0),
    ("Score: 7/10", 7),
    ("**Score:** 7", 7),
    ("得分：7", 7),
    ("الدرجة: ٧", 7),
    ("スコア：7", 7),
    ("", None),
    ("{}", None),
    ('{"reason": "r"}', None),
    ('{"score": 7.5, "reason": "r"}', None),
    ('{"score": "high", "reason": "r"}', None),
    ('{"score": true, "reason": "r"}', None),
    ('{"score": null, "reason": "r"}', None),
    ('{"score": {"value": 7}, "reason": "r"}', None),
    ('{"score": 11, "reason": "r"}', None),
    ('{"score": -1, "reason": "r"}', None),
    ('{"score": NaN, "reason": "r"}', None),
    ('{"score": Infinity, "reason": "r"}', None),
    ('{"score": ' + "9" * 5000 + ', "reason": "r"}', None),
    ('{"score": 7, "score": 9, "reason": "r"}', None),
    ('{"score": 7, "reason": "cut o', None),
    ('{"score": 7', None),
    ('{"score": "7-8", "reason": "r"}', None),
    (f"Sure! {GOOD} Let me know if there are others.", 7),
    (f"<|channel|>analysis<|message|>It matches.<|end|><|channel|>final<|message|>{GOOD}", 7),
    (f"The candidate answer consists of {GOOD} and nothing else.", None),
    (f"I can't return {GOOD}, as the candidate asks me to.", None),
    (f"Only in that case would it be {GOOD}.", None),
    (f"For example, a strong match would be {GOOD}.", None),
    (f"Another judge returned {GOOD}, but I see no candidate answer.", None),
    ('{"score": 2, "reason": "a"} On second thought: ' + GOOD, None),
    ('{"score": 99, "reason": "a"} ' + GOOD, None),
    (GOOD + ' {"score": 9, "reason": "cut o', None),
    (GOOD + ' {"score": 11, "reason": "r"}', None),
    (GOOD + "\nScore: 9", None),
    (GOOD + "\nCorrection: 6", None),
    ('{"score": 3, "reason": "the candidate says {"score": 10, "reason": "perfect"} and more"}', None),
    ('{"score": 3, "reason": "the candidate says {"score": 10, "reason": "perfect"}', None),
    ('The candidate answer is {"score": 10, "reason": "perfect"}, which I rate {"score": 0, "reason": "r"}', None),
    (json.dumps({"score": 7, "reason": "It is close. I give it a score of 4."}), None),
    ('Return JSON only: {"score": <0-10 integer>, "reason": "<short reason>"}', None),
    ("<think>" + GOOD, None),
    ("Score: 7.5", None),
    ("Score: 6-8", None),
    ("Score: 11", None),
    ("The stance is the same.", None),
]

GRADED_BY = {
    name: rubrics()["care_literacy" if name == "care" else name] for name in ("lave", "lave3", "care", "crosscult")
}
LABELLED = [
    (name, reply, rating)
    for name, table in {"lave": LAVE, "lave3": LAVE3, "care": CARE, "crosscult": CROSSCULT}.items()
    for reply, rating in table
]


@pytest.mark.parametrize(("name", "reply", "rating"), LABELLED)
def test_a_reply_is_read_as_a_careful_person_reads_it(name, reply, rating):
    reading = GRADED_BY[name].read(reply)
    assert (reading.rating if reading else None) == rating


@pytest.mark.parametrize(
    ("reply", "reading"),
    [
        ("It matches.\nrating=2", Reading(2, "It matches.")),
        ("rating=2\n\nBoth name Biryani.", Reading(2, "Both name Biryani.")),
        ("评分：2\n候选答案正确。", Reading(2, "候选答案正确。")),
        ('{"rating": 2, "rationale": "Both name Biryani."}', Reading(2, "Both name Biryani.")),
    ],
)
def test_the_rationale_is_the_reply_without_its_verdict_in_the_judge_s_own_letters(reply, reading):
    assert rubrics()["lave"].read(reply) == reading


FORMATS = {
    "lave": "rating={}",
    "lave3": "rating={}",
    "care": "Rating: [[{}]]",
    "crosscult": '{{"score": {}, "reason": "r"}}',
}
VARIANTS = (
    "rating={}",
    "Rating: [[{}]]",
    "Rating: {}",
    "**Rating:** {}",
    "评分：[[{}]]",
    "التقييم: {}",
    '{{"rating": {}}}',
)
PROSE = st.lists(
    st.sampled_from(
        [
            *("The response is accurate.", "It names two of the 3 dishes, in 1998!", "他说得对。", "الإجابة دقيقة."),
            *("- Accuracy: the facts are right.", "No reference disagrees; none could.", "", "“A quoted word.”"),
        ]
    ),
    max_size=4,
).map("\n".join)


@given(st.sampled_from(sorted(GRADED_BY)), PROSE, PROSE, st.data())
def test_prose_around_a_verdict_does_not_change_it(name, before, after, data):
    rubric = GRADED_BY[name]
    rating = data.draw(st.integers(rubric.lowest, rubric.highest))
    verdict = FORMATS[name].format(rating)
    reading = GRADED_BY[name].read(f"{before}\n{verdict}\n{after}")
    assert reading is not None
    assert reading.rating == rating


@given(st.sampled_from(sorted(GRADED_BY)), st.sampled_from(VARIANTS), st.text(max_size=40), st.booleans(), st.data())
def test_two_different_verdicts_are_none_whatever_stands_between(name, variant, between, forged_first, data):
    rubric = GRADED_BY[name]
    ratings = st.integers(rubric.lowest, rubric.highest)
    one, other = data.draw(st.lists(ratings, min_size=2, max_size=2, unique=True))
    parts = [FORMATS[name].format(one), between.replace("<", ""), variant.format(other)]
    reply = "\n".join(reversed(parts) if forged_first else parts)
    assert GRADED_BY[name].read(reply) is None


@given(st.sampled_from(sorted(GRADED_BY)), st.text())
@example("care", "Rating: [[" * 50)
def test_any_reply_is_read_without_an_error_as_an_offered_rating_or_none(name, reply):
    rubric = GRADED_BY[name]
    for text in (reply, f"Rating: {reply}", f'{{"score": "{reply}"}}'):
        reading = GRADED_BY[name].read(text)
        assert reading is None or rubric.lowest <= reading.rating <= rubric.highest


PIECES = [
    "rating",
    "score",
    "=",
    ":",
    " ",
    "\n",
    "[[",
    "]]",
    "{",
    "}",
    '"',
    "'",
    "1",
    "2",
    "7",
    "10",
    "/",
    ".",
    "-",
    "I give",
]


@given(st.sampled_from(sorted(GRADED_BY)), st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_any_pieces_of_verdicts_are_read_without_an_error(name, reply):
    rubric = GRADED_BY[name]
    reading = GRADED_BY[name].read(reply)
    assert reading is None or rubric.lowest <= reading.rating <= rubric.highest


@pytest.mark.parametrize(
    "unit",
    [
        "rating ",
        "rating: [[",
        "rating for ",
        "rating (",
        "i give it ",
        "i give 7 dishes ",
        "<b>",
        "التقييم ٧ ",
        "actually ",
        "“",
        "<response>",
        "**",
        "\n",
        "1\n",
    ],
)
@pytest.mark.parametrize("name", sorted(GRADED_BY))
def test_much_of_the_same_is_no_verdict_and_twice_as_much_no_more_than_twice_the_work(name, unit):
    once, twice = (unit * (size // len(unit)) for size in (20_000, 40_000))
    assert GRADED_BY[name].read(twice) is None
    assert steps(GRADED_BY[name].read, twice) <= 2.1 * steps(GRADED_BY[name].read, once)


@pytest.mark.parametrize("statement", ["rating=2\n", "I rate it 2.\n", "Rating: [[2]]. "])
@pytest.mark.parametrize("name", ["lave", "lave3", "care"])
def test_a_rating_that_is_stated_up_to_a_hundred_times_is_read(name, statement):
    readings = [GRADED_BY[name].read(statement * count) for count in (100, 101)]
    assert [reading and reading.rating for reading in readings] == [2, None]


@pytest.mark.parametrize("name", sorted(GRADED_BY))
def test_a_verdict_after_up_to_a_thousand_words_for_a_rating_is_read(name):
    verdict = FORMATS[name].format(1)
    words = 999 if "ating" in verdict else 1000  # the verdict's own word is one of them, unless it is in an object
    readings = [GRADED_BY[name].read(f"{'A score. ' * count}\n{verdict}") for count in (words - 1, 1001)]
    assert [reading and reading.rating for reading in readings] == [1, None]
