"""The loop over cases: plain answers once each, insertions once each, nothing lost and nothing mixed up."""

from __future__ import annotations

import pytest
import torch
from support.insertion_requests import answered
from support.tiny_world import Instance

from culture_tasks.errors import CultureTasksError, DataError, SettingsError
from culture_tasks.insertion.core.adapter import Answer
from culture_tasks.insertion.core.insertion_method import InsertionMethod, MethodConfig, Prompt
from culture_tasks.insertion.core.requests import (
    AnswerDecoding,
    Insertion,
    Request,
    conversation,
    image_part,
    loaded,
    text_part,
)
from culture_tasks.insertion.core.runner import Costs
from culture_tasks.insertion.core.state import ModelIdentity
from culture_tasks.insertion.core.store import Store
from culture_tasks.insertion.core.weight_method import WeightMethod
from culture_tasks.insertion.methods.base.method import BaseModelMethod

DECODING = AnswerDecoding()


class CountingModel:
    """Answers with all texts that it is shown, after what its weights were changed to, and counts."""

    device = torch.device("cpu")
    model = torch.nn.Module()

    def __init__(self, run="run"):
        self.identity = ModelIdentity(source="a", weights="weights", run=run)
        self.asked, self.batches = [], []

    def generate(self, request, decoding, weights=""):
        text = weights + " ".join(request.texts())
        if "crash" in text:
            raise KeyboardInterrupt
        self.asked.append(text)
        return Answer(text, prompt_tokens=7, new_tokens=2)

    def answers(self, requests, decoding, batch_size, weights=None):
        for start in range(0, len(requests), batch_size):
            places = range(start, min(start + batch_size, len(requests)))
            changes = ["" if weights is None else edit["all"] for edit in (weights(places) if weights else places)]
            self.batches.append([requests[place].question for place in places])
            yield [
                (place, self.generate(requests[place], decoding, change))
                for place, change in zip(places, changes, strict=True)
            ]


class Recording(InsertionMethod):
    """Puts what is inserted before a request, but leaves alone what is asked about the weather."""

    name = "recording"
    config_class = MethodConfig
    needs_state = False
    answers_version = 1
    answering_model = None

    def __init__(self, model, config=None):
        super().__init__(model, config)
        self.calls, self.there, self.prepared = [], [], []
        self.batch_size = 2

    def prepare(self, requests, insertions, store):
        self.prepared.append(len(requests))

    def insert(self, insertion):
        self.calls.append(insertion.answer)
        self.there.append(insertion.answer)

    def reset(self):
        self.there = []

    def prompt(self, request):
        if "weather" in request.question:
            return Prompt(request, notes={"similarity": 0.1})
        shown = request.preceded_by([text_part("+".join(self.there))])
        return Prompt(shown, self.answering_model, {"similarity": 0.9, "activated": 0})


class Replacing(Recording):
    """Has another model answer, but not about the weather."""

    def __init__(self, model, config=None):
        super().__init__(model, config)
        self.answering_model = CountingModel("another run")


class Editing(WeightMethod):
    """Writes what is inserted into the weights."""

    name = "editing"
    config_class = MethodConfig
    needs_state = False
    answers_version = 1
    weights = {"all": ""}  # noqa: RUF012
    by_row = True

    def __init__(self, model, config=None):
        super().__init__(model, config)
        self.calls = []
        self.batch_size = 2

    def edited(self, insertions, before):
        self.calls += [insertion.answer for insertion in insertions]
        return [{"all": f"{one['all']}[{new.answer}] "} for one, new in zip(before, insertions, strict=True)]

    def generate(self, request, decoding):
        return self.model.generate(request, decoding, self.present["all"])


def ask(question, number=0):
    return Request.about(Instance(0, number).image(), question)


EN, ZH, AR = (Insertion(ask(f"about {answer}"), answer) for answer in ("en", "zh", "ar"))
PAIRS = [(ask("c"), (ZH,)), (ask("plain"), ()), (ask("b"), (EN,)), (ask("a"), (ZH,)), (ask("weather"), (EN, ZH))]
PAIRS += [(ask("b"), ()), (ask("weather"), ())]
each_kind = pytest.mark.parametrize("kind", [Recording, Editing])


class Run:
    """A run of a new method over a new model; ``asked`` are the texts that the model was shown."""

    def __init__(self, kind, pairs, store=None, *, alone=False, decoding=DECODING):
        self.method, self.costs = kind(CountingModel()), Costs()
        self.asked = self.method.model.asked
        self.answers = answered(self.method, pairs, decoding, store=store, costs=self.costs, alone=alone)
        self.texts = [answer.text for answer in self.answers]


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Recording, ["zh c", "plain", "en b", "zh a", "weather", "b", "weather"]),
        (Editing, ["[zh] c", "plain", "[en] b", "[zh] a", "[en] [zh] weather", "b", "weather"]),
    ],
)
def test_each_request_has_the_answer_after_its_insertions_and_alone_its_time(kind, expected, alone):
    run = Run(kind, PAIRS, alone=alone)
    assert run.texts == expected
    assert (run.costs.answered, run.costs.hits) == (7 if alone or kind is Editing else 6, 0)
    assert all((answer.seconds or 0) > 0 for answer in run.answers) == alone
    if kind is Recording:
        assert [answer.activated for answer in run.answers] == [0, None, 0, 0, None, None, None]
        assert [answer.similarity for answer in run.answers[:5]] == [0.9, None, 0.9, 0.9, 0.1]


def test_batches_have_requests_of_several_chains_and_stored_answers_need_no_edit():
    store = Store(None)
    run, again = Run(Editing, PAIRS, store), Run(Editing, PAIRS, store)
    assert sorted(run.method.model.batches) == [["b", "weather"], ["c", "a"], ["plain", "b"], ["weather"]]
    assert (run.method.calls, again.method.calls) == (["en", "zh", "zh"], [])  # one chain goes on with the first
    assert again.texts == run.texts


@each_kind
def test_each_insertion_is_made_once_and_chains_go_on(kind):
    chains = [(EN,), (EN, ZH), (EN, ZH, AR), (ZH,), (EN, ZH, AR), (EN,)]
    run = Run(kind, [(ask(f"q{number}"), chain) for number, chain in enumerate(chains)])
    assert sorted(run.method.calls) == ["ar", "en", "zh", "zh"]
    assert run.costs.inserted == 4


def test_no_more_than_a_window_is_prepared_and_all_its_batches_are_full():
    pairs = [(ask("weather", number // 2), (EN,)) for number in range(200)]  # each request twice
    run = Run(Recording, pairs)
    assert run.method.prepared == [32] * 6 + [8]  # eight batches of two different requests
    assert [len(batch) for batch in run.method.model.batches] == [2] * 50


def test_later_runs_and_other_methods_find_plain_answers_and_those_of_a_methods_own_model():
    store, same = Store(None), [(ask("same"), (EN,)), (ask("same"), ())]
    run, again = Run(Replacing, PAIRS, store), Run(Replacing, PAIRS, store)
    assert sorted(run.asked) == ["b", "plain", "weather"]
    assert sorted(run.method.answering_model.asked) == ["en b", "zh a", "zh c"]
    assert (again.answers, again.asked, again.method.answering_model.asked) == (run.answers, [], [])
    plain, other, again = (Run(kind, same, store) for kind in (BaseModelMethod, Recording, BaseModelMethod))
    assert (plain.texts, other.texts) == (["same", "same"], ["en same", "same"])
    assert (plain.asked, other.asked, again.asked) == (["same"], ["en same"], [])


@each_kind
def test_an_interrupt_loses_nothing(kind, tmp_path):
    file, pairs = tmp_path / "answers.sqlite3", [(ask("a"), (EN,)), (ask("b"), (EN,)), (ask("crash"), (ZH,))]
    with pytest.raises(KeyboardInterrupt):
        Run(kind, pairs, Store(file))
    again = Run(kind, pairs[:2], Store(file))
    assert again.texts == (["[en] a", "[en] b"] if kind is Editing else ["en a", "en b"])
    assert again.asked == []


def test_sampled_answers_are_not_kept():
    store, decoding = Store(None), AnswerDecoding(8, temperature=1.0)
    assert [len(Run(Recording, [(ask("same"), ())] * 2, store, decoding=decoding).asked) for _ in range(2)] == [2, 2]
    assert len(store) == 0


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "notes").write_text("something else, long enough to be no header")
    with pytest.raises(CultureTasksError, match=r"notes can't be used as a store .*delete the file"):
        Store(tmp_path / "notes")


def test_decoding_reads_a_request_and_greedy_unsets_what_belongs_to_sampling():
    asked = {"max_new_tokens": 64, "temperature": 0, "do_sample": False, "until": ["\n\n"], "top_p": None}
    assert AnswerDecoding.from_request(asked) == AnswerDecoding(64)
    options = AnswerDecoding(5).options()
    assert options["do_sample"] is False
    assert options["temperature"] is options["top_p"] is options["top_k"] is None
    for nonsense in ({"max_new_tokens": 0}, {"temperature": -1}, {"max_new_tokens": "many"}):
        with pytest.raises(SettingsError, match="generation_kwargs"):
            AnswerDecoding.from_request(nonsense)


def test_a_requests_key_depends_on_text_image_and_system_message_alone_and_context_follows_the_latter(tmp_path):
    image, other = Instance(0, 0).image(), Instance(1, 0).image()
    about = [(image, "q"), (other, "q"), (image, "r"), (image, "q", "system")]
    keys = [Request.about(*given).key for given in about]
    assert len(set(keys)) == 4
    image.save(tmp_path / "image.png")
    assert Request.about(tmp_path / "image.png", "q").key == keys[0]
    parts = [{"type": "image", "url": image}, {"type": "text", "text": "q"}]  # as harnesses put them
    messages = [{"role": "system", "content": "system"}, {"role": "user", "content": parts}]
    assert Request("q", conversation(messages)).key == keys[3]
    request = Request.about(image, "q", "system").preceded_by([image_part(other), text_part("context")])
    system, user = request.messages
    assert system["content"] == [text_part("system")]
    assert [part.get("text") for part in user["content"]] == [None, "context", None, "q"]
    assert request.pictures() == [other, image]
    with pytest.raises(DataError, match="type 'video'"):
        conversation([{"role": "user", "content": [{"type": "video", "url": "x"}]}])
    (tmp_path / "image.png").write_bytes(b"no picture")
    with pytest.raises(DataError, match="can't be read"):
        loaded(tmp_path / "image.png")
