"""Scope scores, their loss, and the vectors that they compare, against cases worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from culture_tasks.insertion.edit_scopes import (
    EditMemory,
    KeptVectors,
    ScopeClassifier,
    edit_text,
    scope_loss,
    squared_distances,
)
from culture_tasks.insertion.methods.mscke.clip_encoder import fused
from culture_tasks.insertion.methods.mscke.config import MsckeConfig
from culture_tasks.insertion.methods.serac.config import SeracConfig
from culture_tasks.insertion.queries import Insertion, Query
from culture_tasks.insertion.replacement import shown_after
from culture_tasks.insertion.value_store import ValueStore


def edit(answer="yes", question="Is it rude?"):
    return Insertion(Query(question, list), answer)


def loss(distances, in_scope):
    return float(scope_loss(torch.tensor(distances), torch.tensor(in_scope)))


class TestScores:
    def test_distances_are_of_each_request_to_each_edit(self):
        edits, requests = torch.tensor([[0.0, 0.0], [3.0, 0.0]]), torch.tensor([[0.0, 4.0], [3.0, 0.0], [1.0, 1.0]])
        # 0 + 16, 9 + 16; 9 + 0, 0; 1 + 1, 4 + 1
        assert squared_distances(edits, requests).tolist() == [[16.0, 25.0], [9.0, 0.0], [2.0, 5.0]]

    def test_the_nearest_edit_has_the_highest_score(self):
        memory = EditMemory()
        for answer, vector in (("far", [2.0, 0.0]), ("near", [0.0, 0.5])):
            memory.write(torch.tensor(vector), edit(answer))
        match = memory.nearest(torch.tensor([0.0, 0.0]))
        assert (match.place, match.edit.answer) == (1, "near")
        assert match.score == pytest.approx(math.exp(-0.25))

    def test_equal_vectors_have_the_score_1(self):
        memory = EditMemory()
        memory.write(torch.tensor([0.3, -0.7]), edit())
        assert memory.nearest(torch.tensor([0.3, -0.7])).score == 1.0

    def test_of_equal_scores_the_first_inserted(self):
        memory = EditMemory()
        for answer in ("first", "second"):
            memory.write(torch.tensor([1.0, 0.0]), edit(answer))
        assert memory.nearest(torch.tensor([0.0, 0.0])).edit.answer == "first"

    def test_an_empty_memory_has_no_nearest(self):
        memory = EditMemory()
        memory.write(torch.tensor([1.0]), edit())
        memory.clear()
        assert len(memory) == 0
        with pytest.raises(LookupError, match="empty"):
            memory.nearest(torch.tensor([1.0]))


class TestLoss:
    def test_in_scope_it_is_the_squared_distance(self):
        # -ln exp(-0.7) = 0.7
        assert loss([0.7], [True]) == pytest.approx(0.7)

    def test_out_of_scope_it_is_what_is_missing_to_1(self):
        # s = exp(-ln 4) = 1/4: -ln(1 - 1/4)
        assert loss([math.log(4)], [False]) == pytest.approx(-math.log(0.75))

    def test_is_the_mean_over_requests(self):
        # s = 1/2 for both: ln 2 on either side
        assert loss([math.log(2), math.log(2)], [True, False]) == pytest.approx(math.log(2))
        # 0, and -ln(1 - exp(-1))
        assert loss([0.0, 1.0], [True, False]) == pytest.approx(-math.log(1 - math.exp(-1)) / 2)

    def test_is_the_cross_entropy_of_the_scores(self):
        distances, in_scope = torch.tensor([0.1, 0.5, 2.0, 4.0]), torch.tensor([True, False, True, False])
        expected = torch.nn.functional.binary_cross_entropy(torch.exp(-distances), in_scope.float())
        assert float(scope_loss(distances, in_scope)) == pytest.approx(float(expected), rel=1e-5)

    def test_equal_vectors_that_should_differ_cost_much_and_not_infinitely_much(self):
        distances = torch.tensor([0.0, 0.0], requires_grad=True)
        found = scope_loss(distances, torch.tensor([False, True]))
        found.backward()
        assert 10 < float(found.detach()) < 20
        assert torch.isfinite(distances.grad).all()

    def test_the_gradient_pulls_what_is_in_scope_and_pushes_what_is_not(self):
        distances = torch.tensor([0.5, 0.5], requires_grad=True)
        scope_loss(distances, torch.tensor([True, False])).backward()
        # d/dd of d/2; d/dd of -ln(1 - e^-d) / 2 = -(e^-d / (1 - e^-d)) / 2
        share = math.exp(-0.5) / (1 - math.exp(-0.5))
        assert distances.grad.tolist() == pytest.approx([0.5, -share / 2])


class TestClassifier:
    def test_begins_as_the_identity(self):
        vectors = torch.randn(3, 4)
        assert torch.equal(ScopeClassifier(4)(vectors), vectors)


class TestFusion:
    IMAGES, TEXTS = torch.tensor([[0.6, 0.8]]), torch.tensor([[0.8, -0.6]])

    def test_dot_multiplies_element_by_element(self):
        # (0.48, -0.48), of length 0.48 * sqrt 2
        half = math.sqrt(0.5)
        assert fused(self.IMAGES, self.TEXTS, "dot")[0].tolist() == pytest.approx([half, -half])

    def test_concatenation_puts_the_image_after_the_text(self):
        found = fused(self.IMAGES, self.TEXTS, "concatenation")[0]
        assert (found * math.sqrt(2)).tolist() == pytest.approx([0.8, -0.6, 0.6, 0.8])


class TestTexts:
    def test_an_edit_is_its_question_and_answer(self):
        assert edit_text(edit("yes", "Is it rude?")) == "Is it rude? yes"

    def test_the_replacement_model_reads_the_edit_before_the_request(self):
        system = {"role": "system", "content": "Be brief."}
        request = Query("Is it fine?", lambda: [system, {"role": "user", "content": "Is it fine?"}])
        messages = shown_after(edit("yes", "Is it rude?"), request).messages()
        assert [message["role"] for message in messages] == ["system", "user"]
        assert [part["text"] for part in messages[1]["content"]] == ["Is it rude? yes\n", "Is it fine?"]


class TestOptions:
    def test_the_papers_values_are_the_defaults(self):
        for config in (SeracConfig(), MsckeConfig()):
            assert (config.epochs, config.threshold, config.replacement_layer) == (1, 0.5, -1)
            assert (config.classifier_learning_rate, config.replacement_learning_rate) == (1e-4, 1e-5)
        assert SeracConfig().max_text_length == 512
        assert SeracConfig().encoder == "sentence-transformers/all-MiniLM-L6-v2"
        assert MsckeConfig().encoder == "openai/clip-vit-large-patch14"


class Encode:
    """Turns texts into their lengths, and remembers in which batches."""

    def __init__(self):
        self.batches = []

    def __call__(self, texts):
        self.batches.append(list(texts))
        return torch.tensor([[float(len(text))] for text in texts])


class TestKeptVectors:
    def test_are_computed_in_batches_and_once_for_the_store(self, tmp_path):
        first, again = Encode(), Encode()
        for encode in (first, again):
            vectors = KeptVectors("encoder", str, encode)
            with ValueStore(tmp_path / "kept") as kept:
                vectors.prepare(["a", "bb", "a", "ccc"], kept, batch_size=2)
            assert vectors.of(["ccc", "a", "bb"]).tolist() == [[3.0], [1.0], [2.0]]
        assert first.batches == [["a", "bb"], ["ccc"]]
        assert again.batches == []

    def test_another_encoder_finds_nothing(self, tmp_path):
        encode = Encode()
        with ValueStore(tmp_path / "kept") as kept:
            for encoder in ("one", "another"):
                KeptVectors(encoder, str, encode).prepare(["a"], kept, batch_size=8)
        assert encode.batches == [["a"], ["a"]]

    def test_what_was_not_prepared_is_computed_when_it_is_needed(self):
        encode = Encode()
        vectors = KeptVectors("encoder", str, encode)
        vectors.of(["a", "bb"])
        assert vectors.of(["bb", "ccc", "ccc"]).tolist() == [[2.0], [3.0], [3.0]]
        assert encode.batches == [["a", "bb"], ["ccc"]]
