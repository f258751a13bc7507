"""GRACE's codebook on keys made by hand."""

from __future__ import annotations

import pytest
import torch

from culture_tasks.insertion.methods.grace.method import MARGIN, Codebook


def key(*numbers):
    return torch.tensor([float(number) for number in numbers])


def value(number):
    return torch.full((3,), float(number))


@pytest.fixture
def codebook():
    """One entry at the origin, with the first radius 1."""
    made = Codebook(1.0)
    made.entry_for(key(0, 0), "kimono", value(1))
    return made


def radii(codebook):
    return [entry.radius for entry in codebook.entries]


def test_a_distant_key_is_added_with_the_first_radius(codebook):
    # 2.5 > 1 + 1
    entry = codebook.entry_for(key(0, 2.5), "kimono", value(2))
    assert radii(codebook) == [1.0, 1.0]
    assert entry is codebook.entries[1]
    assert torch.equal(entry.value, value(2))


def test_a_near_key_with_the_same_answer_expands_the_entry_and_never_shrinks_it(codebook):
    # The distance of (1.2, 1.6) is 2, which is no more than 1 + 1.
    entry = codebook.entry_for(key(1.2, 1.6), "kimono", value(2))
    assert entry is codebook.entries[0]
    assert radii(codebook) == pytest.approx([2.0])
    assert torch.equal(entry.value, value(1))
    assert torch.equal(entry.key, key(0, 0))
    codebook.entry_for(key(0.5, 0), "kimono", value(2))
    assert radii(codebook) == pytest.approx([2.0])
    # Now 3 is no more than 1 + 2.
    codebook.entry_for(key(3, 0), "kimono", value(2))
    assert radii(codebook) == pytest.approx([3.0])


def test_a_near_key_with_another_answer_splits_the_radii(codebook):
    entry = codebook.entry_for(key(0, 1.5), "hanbok", value(2))
    assert radii(codebook) == pytest.approx([0.75 - MARGIN, 0.75], abs=1e-9)
    assert (entry.answer, codebook.entries[0].answer) == ("hanbok", "kimono")
    # Halfway between both, only the newer one is used: its radius holds the point, the older one's doesn't.
    values, used = codebook.lookup(torch.stack([key(0, 0.75), key(0, 0.76), key(0, 0.74)]))
    assert used.tolist()[1:] == [True, True]
    assert values[1:, 0].tolist() == [2.0, 1.0]


def test_the_same_request_again_replaces_the_answer(codebook):
    entry = codebook.entry_for(key(0, 0), "hanbok", value(2))
    assert entry is codebook.entries[0]
    assert (entry.answer, entry.radius, len(codebook.entries)) == ("hanbok", 1.0, 1)


def test_the_nearest_entry_is_used_within_its_radius_alone(codebook):
    codebook.entry_for(key(4, 0), "ao dai", value(2))
    codebook.entries[0].radius = 3.0
    keys = torch.stack([key(0.5, 0), key(1, 0), key(2.9, 0), key(3, 0), key(5.1, 0), key(-3, 0), key(-3.1, 0)])
    values, used = codebook.lookup(keys)
    # (2.9, 0) is within the radius 3 of the first entry, but nearer to the second, whose radius is 1.
    assert used.tolist() == [True, True, False, True, False, True, False]
    assert values[:, 0].tolist() == [1, 1, 2, 2, 2, 1, 1]
