import pytest

from culture_tasks.metrics.rouge import rouge_l


@pytest.mark.parametrize(
    ("candidate", "reference", "expected"),
    [
        # L = 3 (the, cat, sat) of 3 and 6 tokens: P = 1, R = 1/2, F = 2 * 0.5 / 1.5 = 2/3
        ("the cat sat", "the cat sat on the mat", 200 / 3),
        # L = 2 (a, c) of 3 and 3 tokens: F = 2/3
        ("a c b", "a x c", 200 / 3),
        # the order counts: L = 1 of 3 and 3
        ("a b c", "c b a", 100 / 3),
        # 不吉利 against 吉利: L = 2 of 3 and 2 tokens: P = 2/3, R = 1, F = 4/5
        ("不吉利", "吉利。", 80.0),
        # نعم مقبول against لا مقبول: L = 1 of 2 and 2 tokens
        ("نعم، مقبول.", "لا مقبول", 50.0),
        # Chinese with Latin: 我 用 wifi against 我 有 wifi: L = 2 of 3 and 3
        ("我用WiFi", "我有wifi", 200 / 3),
        # これは箸 (4 tokens) against これは橋 (4): L = 3
        ("これは箸", "これは橋", 75.0),
        # forms of the same letters
        ("مُسْلِم", "مسلم", 100.0),
        ("مـــسلم", "مسلم", 100.0),
        ("Ｈｅｌｌｏ", "hello", 100.0),
        ("STRASSE", "straße", 100.0),
        # texts without tokens
        (" ", "\n", 100.0),
        ("", "yes", 0.0),
        ("?!", "?!", 100.0),
        ("?!", "!?", 0.0),
    ],
)
def test_values_worked_by_hand(candidate, reference, expected):
    assert rouge_l(candidate, reference) == pytest.approx(expected)
