"""Every image of a document reaches lm-eval's model, or the document has no score. Real runs, in process."""

from __future__ import annotations

import copy
import pickle

import pytest
from lm_eval.api.model import LM
from lm_eval.models.openai_completions import LocalChatCompletion
from support.fault_server import FaultServer, says
from support.in_process import run_lm_eval, variant

from culture_tasks.errors import ImagesNotShownError
from culture_tasks.harness.lm_eval.task import Images

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def server():
    server = FaultServer()
    server.decide = lambda seen: says("happiness")
    yield server
    server.close()


def run_api(server, tasks, model_options=None, **options):
    model = LocalChatCompletion(base_url=f"{server.url}/chat/completions", model="m", **(model_options or {}))
    seed = model._seed
    results = run_lm_eval(model, tasks, **{"apply_chat_template": True} | options)
    assert model._seed == seed  # which each repeat has changed
    return results


def images_of(seen):
    content = seen.body["messages"][-1]["content"]
    return [part for part in content if part["type"] == "image_url"] if isinstance(content, list) else []


def text_of(seen):
    content = seen.body["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


OWN_TASK = """
task: own_text_task
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/own.jsonl}}}}
test_split: test
output_type: generate_until
doc_to_text: '{{{{q}}}}'
doc_to_target: '{{{{a}}}}'
metric_list: [{{metric: exact_match}}]
"""


@pytest.mark.parametrize("order", [1, -1])
def test_a_mixed_run_sends_an_api_model_every_image_and_no_mark_also_beside_tasks_of_others(server, tmp_path, order):
    (tmp_path / "own.jsonl").write_text('{"q": "What?", "a": "That."}\n')
    (tmp_path / "own_text_task.yaml").write_text(OWN_TASK.format(folder=tmp_path))
    tasks = ["cedar", "culturalvqa", "own_text_task"][::order]
    results = run_api(server, tasks, include=tmp_path, limit=3)
    assert [len(results["samples"][task]) for task in ("cedar_text", "cedar_multimodal", "culturalvqa")] == [3, 3, 3]
    assert sorted(len(images_of(seen)) for seen in server.requests) == [0] * 4 + [1] * 6
    assert all("<image>" not in text_of(seen) and not text_of(seen).startswith("\n") for seen in server.requests)
    assert "<image>" not in str([sample["arguments"] for sample in results["samples"]["cedar_multimodal"]])
    assert [seen.body.get("stop") for seen in server.requests if "What?" not in text_of(seen)] == [None] * 9


def test_images_without_room_or_chat_messages_are_refused_before_the_first_request(server):
    with pytest.raises(ImagesNotShownError, match=r"^culturalvqa_fewshot: .* 4 images.* Add max_images=4 to --model"):
        run_api(server, ["care_zh", "culturalvqa_fewshot"], limit=1)
    with pytest.raises(ImagesNotShownError, match="--apply_chat_template"):
        run_api(server, ["culturalvqa"], limit=1, apply_chat_template=False)
    assert server.requests == []
    # With room for them all images are sent and numbered.
    run_api(server, ["culturalvqa_fewshot"], {"max_images": 4}, limit=1)
    [seen] = server.requests
    assert len(images_of(seen)) == 4
    places = [text_of(seen).index(f"Image {number}:\n") for number in (1, 2, 3, 4)]
    assert places == sorted(places)
    assert "<image>" not in text_of(seen)


class Model(LM):
    """Looks at what a test says, and answers all the same."""

    MULTIMODAL = True

    def __init__(self, look):
        super().__init__()
        self.look = look
        self.asked = 0

    def generate_until(self, requests, disable_tqdm=False):
        for request in requests:
            self.asked += 1
            self.look(request.args[2]["visual"] if len(request.args) > 2 else [])
        return ["x" for _ in requests]

    loglikelihood = loglikelihood_rolling = None


Model.__abstractmethods__ = frozenset()


def test_a_model_that_looks_at_some_images_has_no_score_and_its_limit_is_respected():
    for look, message in (
        (lambda images: None, r"^culturalvqa_fewshot: .*Model looked at 0 of 4 .* 1 more"),
        (lambda images: [images[-1], images[0]], r"^culturalvqa_fewshot: .*Model looked at 2 of 4 .* 1 more"),
        (lambda images: images[:1], r"^culturalvqa_fewshot: .*Model looked at 1 of 4"),
    ):
        with pytest.raises(ImagesNotShownError, match=message):
            run_lm_eval(Model(look), ["culturalvqa_fewshot"], limit=2)
    with pytest.raises(ImagesNotShownError, match="0 of 4"):
        run_lm_eval(Model(len), ["culturalvqa_fewshot"], limit=2, predict_only=True)
    results = run_lm_eval(Model(list), ["culturalvqa_fewshot"], limit=2)
    assert results["results"]["culturalvqa_fewshot"]["lave_lexical,none"] == 0
    limited = Model(list)
    limited.max_images = 1
    for model, metadata in ((limited, {}), (Model(list), {"max_images": 1})):  # --model_args, as tasks are given them
        with pytest.raises(ImagesNotShownError, match="max_images=4"):
            run_lm_eval(model, ["culturalvqa_fewshot"], limit=1, metadata=metadata)
        assert model.asked == 0


def test_every_way_to_look_at_all_images_or_to_hand_them_on_counts():
    slices = (lambda images: images[:4], lambda images: [images[n] for n in range(4)])
    for look in (list, *slices, pickle.dumps, copy.copy, copy.deepcopy):
        images = Images("abcd")
        assert images.unseen == {0, 1, 2, 3}
        look(images)
        assert images.unseen == set()


def test_a_mixed_run_of_hf_multimodal_answers_as_runs_of_one_kind_do(tiny_vlm):
    from lm_eval.models.hf_vlms import HFMultimodalLM

    model = HFMultimodalLM(str(tiny_vlm), device="cpu", dtype="float32")

    def answers(tasks):
        results = run_lm_eval(model, tasks, limit=2, apply_chat_template=True, gen_kwargs={"max_gen_toks": 8})
        return {task: [sample["resps"] for sample in samples] for task, samples in results["samples"].items()}

    images, text = ["cedar_multimodal_en", "culturalvqa_fewshot"], ["cedar_text_en", "culturalvqa_blind"]
    assert answers([text[0], *images, text[1]]) == answers(images) | answers(text)


@pytest.mark.parametrize(("concurrent", "use_cache"), [(1, False), (4, True)])
def test_each_repeat_has_the_next_seed_and_seeds_and_stop_strings_of_the_user_are_sent_as_they_are(
    server, tmp_path, concurrent, use_cache
):
    server.decide = lambda seen: says(f"{text_of(seen)} {seen.body['seed']}")
    tasks = variant(tmp_path, "lm_eval", "care_zh", repeats=3)
    cache = str(tmp_path / "responses") if use_cache else None
    model = {"seed": 7, "num_concurrent": concurrent}
    results = run_api(server, tasks, model, include=tmp_path, limit=2, use_cache=cache)
    assert sorted(seen.body["seed"] for seen in server.requests) == [7, 7, 8, 8, 9, 9]
    for sample in results["samples"]["variant"]:
        question = sample["doc"]["question"]
        assert sample["resps"] == [[f"{question} {seed}" for seed in (7, 8, 9)]]
    server.requests.clear()
    run_api(server, tasks, model, include=tmp_path, limit=1, gen_kwargs={"seed": 5, "until": ["END"]})
    assert [(seen.body["seed"], seen.body["stop"]) for seen in server.requests] == [(5, ["END"])] * 3
