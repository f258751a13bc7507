"""lmms-eval's model is shown every image of a document, or the document has no score. Real runs, in process."""

from __future__ import annotations

import copy
import io
import pickle

import numpy
import pytest
from PIL import Image
from support.in_process import run_lmms_eval
from support.lmms_models import ChatEcho, SimpleEcho

from culture_tasks.errors import ImagesNotShownError
from culture_tasks.harness.lmms_eval import plugin
from culture_tasks.harness.lmms_eval.task import refuse_unseen, watch_images

pytestmark = pytest.mark.filterwarnings("ignore")

WAYS_TO_LOOK = (
    *(lambda image: image.tobytes(), lambda image: image.resize((8, 8)), lambda image: image.convert("L")),
    *(lambda image: image.copy(), lambda image: image.save(io.BytesIO(), format="PNG"), numpy.asarray),
    *(pickle.dumps, copy.deepcopy, lambda image: image.crop((0, 0, 4, 4)).tobytes()),
)
KINDS = {"simple": SimpleEcho, "chat": ChatEcho}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr("lmms_eval.api.task.ConfigurableTask.process_results.retry.sleep", lambda seconds: None)


def model(kind, look):
    """A model that looks at the images of each request in these ways, one after the other."""

    class Model(KINDS[kind]):
        def generate_until(self, requests):
            for self.look in look if isinstance(look, tuple) else (look,):
                for request in requests:
                    self._input_of(request)
            return ["x" for _ in requests]

    return Model()


@pytest.mark.parametrize(
    ("kind", "task", "look", "said"),
    [
        ("simple", "culturalvqa_fewshot", lambda shown: shown[0].load(), "1 of 4 images"),
        ("chat", "culturalvqa_fewshot", lambda shown: [image.size for image in shown], "0 of 4 images"),
        ("simple", "crosscult_diagnostic", len, "0 of 1 images"),
    ],
)
def test_a_model_that_looks_at_some_images_has_no_score(kind, task, look, said):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - lmms-eval wraps it
        run_lmms_eval(model(kind, look), [task], limit=1)
    error = caught.value
    while error.__cause__ is not None:  # lmms-eval tries five times
        error = error.__cause__
    assert f"looked at {said}" in str(error)


def test_a_command_ends_with_the_message_and_an_answer_of_a_cache_is_scored(monkeypatch):
    results = run_lmms_eval(model("simple", ()), ["culturalvqa"], limit=2)  # nobody asks the model
    assert results["results"]["culturalvqa"]["lave_lexical,none"] == 0
    monkeypatch.setattr(plugin, "_in_a_command", True)
    with pytest.raises(SystemExit, match=r"^culture-tasks: error: lmms-eval: .* 0 of 1 images .*internvl_hf"):
        run_lmms_eval(model("chat", len), ["cedar_multimodal_en"], limit=1)


def test_every_way_to_read_pixels_counts_as_looking():
    for number, look in enumerate(WAYS_TO_LOOK):
        doc = {"id": str(number)}
        [image] = watch_images(doc, [Image.new("RGB", (8, 8))])
        with pytest.raises(ImagesNotShownError, match="0 of 1 images"):
            refuse_unseen(doc)
        look(image)
        refuse_unseen(doc)


@pytest.mark.parametrize("kind", KINDS)
def test_asking_for_images_again_without_looking_takes_nothing_back(kind):
    def look(shown):
        for image in shown:
            image.load()
            assert type(image) is Image.Image  # Pillow's own type

    results = run_lmms_eval(model(kind, (look, len)), ["culturalvqa_fewshot"], limit=2)
    assert results["results"]["culturalvqa_fewshot"]["lave_lexical,none"] == 0
