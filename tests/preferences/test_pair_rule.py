"""Pairs, as properties: one per question, no tie, nested fractions, draws by seed; and the order of KTO."""

from __future__ import annotations

import itertools
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from support.rated_data import question

from culture_tasks.preferences.dataset_folder import METHODS
from culture_tasks.preferences.pairs import Rule, pairs_of, questions_of_culture, split

RATINGS = st.lists(st.integers(1, 10).map(float), min_size=1, max_size=5)
SEEDS = st.integers(0, 1_000)


@st.composite
def questions(draw):
    """Questions in two languages about native, foreign and other cultures."""
    return [
        question(
            f"question {number}",
            ratings,
            language=draw(st.sampled_from(["ar", "zh"])),
            culture=draw(st.sampled_from(["native", "foreign", "general", None])),
        )
        for number, ratings in enumerate(draw(st.lists(RATINGS, min_size=1, max_size=12)))
    ]


def fingerprints(some):
    return {each.fingerprint for each in some}


@given(questions(), SEEDS)
def test_a_question_has_one_pair_of_its_best_and_its_worst_unless_all_are_rated_alike(asked, seed):
    pairs, without = pairs_of(asked, seed)
    assert max(Counter(pair.question.fingerprint for pair in pairs).values(), default=1) == 1
    for pair in pairs:
        ratings = [answer.rating for answer in pair.question.answers]
        assert (pair.chosen.rating, pair.rejected.rating) == (max(ratings), min(ratings))
        assert {pair.chosen.text, pair.rejected.text} <= {answer.text for answer in pair.question.answers}
    assert without["questions_with_one_response"] == sum(len(each.answers) == 1 for each in asked)
    assert without["ties"] == sum(
        len(each.answers) > 1 and len({answer.rating for answer in each.answers}) == 1 for each in asked
    )
    assert len(pairs) + without.total() == len(asked)


@given(questions(), SEEDS, st.randoms())
def test_what_is_drawn_depends_neither_on_the_order_nor_on_other_questions(asked, seed, random):
    before = {pair.question.fingerprint: pair[1:] for pair in pairs_of(asked, seed)[0]}
    kept = random.sample(asked, len(asked) // 2)
    for each in kept:
        random.shuffle(each.answers)
    after = {pair.question.fingerprint: pair[1:] for pair in pairs_of(kept, seed)[0]}
    assert after == {name: pair for name, pair in before.items() if name in fingerprints(kept)}


def test_equally_good_and_equally_bad_responses_are_drawn_by_the_seed():
    asked = [question("q", [9, 9, 9, 2, 2])]
    pairs = [pairs_of(asked, seed)[0][0] for seed in range(300)]
    drawn = Counter((pair.chosen.text, pair.rejected.text) for pair in pairs)
    assert set(drawn) == {(f"response {best}", f"response {worst}") for best in range(3) for worst in (3, 4)}
    assert min(drawn.values()) > 25  # 50 are expected of each


@given(questions(), SEEDS, st.floats(0, 0.9), st.floats(0.01, 1), st.floats(0.01, 1))
def test_a_smaller_fraction_is_part_of_a_larger_one_and_development_stays_the_same(asked, seed, dev, one, other):
    small, large, whole = (split(asked, Rule(dev=dev, fraction=share), seed) for share in sorted((one, other, 1.0)))
    assert small["train"] <= large["train"] <= whole["train"]
    assert small["dev"] == large["dev"] == whole["dev"]
    assert not whole["train"] & whole["dev"]
    assert whole["train"] | whole["dev"] == fingerprints(asked)
    fraction = min(one, other)
    for language in ("ar", "zh"):  # the fraction is that of each language
        some = fingerprints(each for each in asked if each.language == language) & whole["train"]
        assert len(some & small["train"]) == (max(round(fraction * len(some)), 1) if some else 0)


def test_development_has_its_share_of_the_questions():
    asked = [question(f"q{each}", [1, 2]) for each in range(20)]
    numbers = [len(split(asked, Rule(dev=dev), 0)["dev"]) for dev in (0, 0.001, 0.1, 0.99)]
    assert numbers == [0, 1, 2, 19]


@given(questions(), SEEDS)
def test_native_foreign_and_mixed_questions_are_equally_many_in_each_language(asked, seed):
    native, foreign, mixed = (
        questions_of_culture(asked, Rule(culture=each), seed) for each in ("native", "foreign", "mixed")
    )
    for language in ("ar", "zh"):
        counts = Counter(each.culture for each in asked if each.language == language)
        number = min(counts["native"], counts["foreign"])
        of_language = [[each for each in some if each.language == language] for some in (native, foreign, mixed)]
        assert [len(some) for some in of_language] == [number] * 3
        assert sum(each.culture == "native" for each in of_language[2]) == number // 2
    assert {each.culture for each in native} <= {"native"}
    assert {each.culture for each in foreign} <= {"foreign"}
    assert fingerprints(mixed) <= fingerprints(native) | fingerprints(foreign)


def kto(count, seed=0):
    pairs, _ = pairs_of([question(f"Q{number}", [9, 1]) for number in range(count)], 0)
    return list(METHODS["kto"](pairs, seed))


@given(st.integers(3, 60), st.integers(0, 5))
def test_neighbours_are_of_different_questions_and_labels_alternate_in_an_order_of_the_seed(count, seed):
    """TRL gives each response to the prompt of the next row on the device, which is another question's then."""
    rows = kto(count, seed)
    assert all(one["question_id"] != other["question_id"] for one, other in itertools.pairwise(rows))
    assert [row["label"] for row in rows] == [True, False] * count
    assert rows == kto(count, seed)
    orders = [[row["prompt"][0]["content"] for row in kto(20, seed) if row["label"]] for seed in (0, 1)]
    assert orders[0] != orders[1] != [f"Q{number}" for number in range(20)]
