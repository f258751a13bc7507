"""Fingerprints tell whether two runs saw the same rows."""

from hypothesis import given
from hypothesis import strategies as st

from culture_tasks.data.tables import fingerprint

JSON = st.dictionaries(st.text(), st.none() | st.integers() | st.text() | st.lists(st.text()), max_size=4)


def test_a_fingerprint_never_changes():
    # sha256 of '{"a":"\u00e9","b":[1,2]}\n', first 16 digits, from sha256sum
    assert fingerprint([{"b": [1, 2], "a": "é"}]) == "f7b3428a905bfe60"


@given(JSON)
def test_the_order_of_fields_does_not_matter(row):
    assert fingerprint([row]) == fingerprint([dict(reversed(row.items()))])


def test_the_order_and_the_number_of_rows_do():
    a, b = {"x": 1}, {"x": 2}
    assert len({fingerprint(rows) for rows in ([a, b], [b, a], [a], [a, a, b], [])}) == 5


def test_a_number_is_not_its_text():
    assert fingerprint([{"x": 1}]) != fingerprint([{"x": "1"}])


@given(st.lists(JSON, max_size=3))
def test_any_text_has_a_fingerprint(rows):
    assert len(fingerprint(rows)) == 16
