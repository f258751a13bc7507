"""The runner: plain answers once each, insertions once each, nothing lost and nothing mixed up."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
import torch
from support.tiny_world import Instance

from culture_tasks.errors import CultureTasksError, DataError, SettingsError
from culture_tasks.insertion.core.adapter import ModelAnswer
from culture_tasks.insertion.core.identity import ModelIdentity
from culture_tasks.insertion.core.insertion_method import InsertionMethod, MethodConfig, Route
from culture_tasks.insertion.core.queries import AnswerDecoding, Insertion, Query, image_part, text_part
from culture_tasks.insertion.core.runner import Job, Runner
from culture_tasks.insertion.core.value_store import ValueStore
from culture_tasks.insertion.methods.base.method import BaseModelMethod

DECODING = AnswerDecoding()


class CountingModel:
    """Answers with all texts that it is shown, after what its weights were changed to, and counts."""

    device = torch.device("cpu")

    def __init__(self, run="run"):
        self.identity = ModelIdentity("a", "weights", run)
        self.asked, self.batches, self.weights = [], [], ""

    def generate(self, query, decoding):
        text = self.weights + " ".join(query.texts())
        if "crash" in text:
            raise KeyboardInterrupt
        self.asked.append(text)
        return ModelAnswer(text, prompt_tokens=7, new_tokens=2)

    def answers(self, queries, decoding, batch_size, weights=None):
        assert weights is None
        self.batches.append([query.question for query in queries])
        for place, query in enumerate(queries):
            yield place, self.generate(query, decoding)


class Recording(InsertionMethod):
    """Puts what is inserted before a request, but leaves alone what is asked about the weather."""

    name = "recording"
    config_class = MethodConfig
    needs_state = False
    answers_version = 1

    def __init__(self, model, config=None):
        super().__init__(model, config)
        self.calls, self.there = [], []

    def insert(self, insertion):
        self.calls.append(insertion.answer)
        self.there.append(insertion.answer)

    def reset(self):
        self.calls.append("reset")
        self.there = []

    def ask(self, query):
        if "weather" in query.question:
            return Route(query, similarity=0.1, threshold=0.5)
        return Route(query.preceded_by([text_part("+".join(self.there))]), activated=0, similarity=0.9, threshold=0.5)


class Editing(Recording):
    """Writes what is inserted into the weights."""

    edits_weights = True

    def insert(self, insertion):
        super().insert(insertion)
        self.model.weights = f"[{'+'.join(self.there)}] "

    def reset(self):
        super().reset()
        self.model.weights = ""

    def ask(self, query):
        raise AssertionError("the runner asks an edited model itself")

    def generate(self, query, decoding):
        return self.model.generate(query, decoding)


class Replacing(Recording):
    """Has another model answer, but not about the weather."""

    def __init__(self, model, config=None):
        super().__init__(model, config)
        self.other = CountingModel("another run")

    def ask(self, query):
        asked = super().ask(query)
        return asked if asked.activated is None else replace(asked, by=self.other)


def ask(question, number=0):
    return Query.about(Instance(0, number).image(), question)


def sample(answer):
    return Insertion(ask(f"about {answer}"), answer)


EN, ZH, AR = sample("en"), sample("zh"), sample("ar")


JOBS = [
    Job(ask("c"), DECODING, (ZH,)),
    Job(ask("plain"), DECODING),
    Job(ask("b"), DECODING, (EN,), compare=True),
    Job(ask("a"), DECODING, (ZH,)),
    Job(ask("weather"), DECODING, (EN, ZH), compare=True),
]
SAME = Job(ask("same"), DECODING, (EN,), compare=True)
each_mode = pytest.mark.parametrize("mode", [{}, {"one_at_a_time": True}])
each_kind = pytest.mark.parametrize("kind", [Recording, Editing])


class Run:
    """A run of a new method over a new model; ``asked`` are the texts that the model was shown."""

    def __init__(self, kind, jobs, store=None, **mode):
        self.method = kind(CountingModel())
        self.asked = self.method.model.asked
        runner = Runner(self.method, ValueStore(None) if store is None else store, **mode)
        self.identity, self.costs = runner.identity, runner.costs
        self.outcomes = runner.run(jobs)
        self.texts = [outcome.answer.text for outcome in self.outcomes]
        self.inserted = [call for call in getattr(self.method, "calls", ()) if call != "reset"]


@each_mode
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Recording, ["zh c", "plain", "en b", "zh a", "weather"]),
        (Editing, ["[zh] c", "plain", "[en] b", "[zh] a", "[en+zh] weather"]),
    ],
)
def test_outcomes_stand_in_the_order_of_the_jobs(kind, expected, mode):
    run = Run(kind, JOBS, **mode)
    assert run.texts == expected
    assert [outcome.base for outcome in run.outcomes] == [None, None, "b", None, "weather"]
    answers = [outcome.answer for outcome in run.outcomes]
    assert {(answer.prompt_tokens, answer.new_tokens) for answer in answers} == {(7, 2)}
    if kind is Editing:
        assert run.method.model.weights == ""
        return
    assert [answer.activated for answer in answers] == [0, None, 0, 0, None]
    assert [answer.similarity for answer in answers] == [0.9, None, 0.9, 0.9, 0.1]
    assert {answer.threshold for answer in answers} == {None, 0.5}


def test_the_requests_of_one_edited_state_are_one_batch_and_stored_answers_need_no_state():
    store = ValueStore(None)
    run, again = Run(Editing, JOBS, store), Run(Editing, JOBS, store)
    assert sorted(run.method.model.batches) == [["b"], ["c", "a"], ["plain", "b", "weather"], ["weather"]]
    assert run.inserted == ["zh", "en", "zh"]
    assert set(again.method.calls) == {"reset"}


def test_a_model_of_the_methods_own_answers_what_the_method_gives_it():
    store = ValueStore(None)
    run, again = Run(Replacing, JOBS, store), Run(Replacing, JOBS, store)
    assert run.texts == ["zh c", "plain", "en b", "zh a", "weather"]
    assert sorted(run.asked) == ["b", "plain", "weather"]
    assert sorted(run.method.other.asked) == ["en b", "zh a", "zh c"]
    assert again.outcomes == run.outcomes
    assert again.asked == again.method.other.asked == []


@each_kind
@each_mode
def test_each_insertion_is_done_once_and_chains_go_on(kind, mode):
    chains = [(EN,), (EN, ZH), (EN, ZH, AR), (ZH,), (EN, ZH, AR), (EN,)]
    jobs = [Job(ask(f"q{n}"), DECODING, chain) for n, chain in enumerate(chains)]
    assert Run(kind, jobs, **mode).inserted == ["en", "zh", "ar", "zh"]


def test_later_runs_and_other_methods_find_plain_answers():
    store = ValueStore(None)
    plain, other, again = (Run(kind, [SAME] * 2, store) for kind in (BaseModelMethod, Recording, BaseModelMethod))
    assert plain.texts[0] == plain.outcomes[0].base == other.outcomes[0].base == "same"
    assert (plain.asked, other.asked, again.asked) == (["same"], ["en same"], [])
    assert again.outcomes == plain.outcomes


@each_kind
@each_mode
def test_an_interrupt_loses_nothing(kind, mode, tmp_path):
    file = tmp_path / "answers.sqlite3"
    jobs = [Job(ask(name), DECODING, (EN,), compare=name != "crash") for name in ("a", "b", "crash")]
    with pytest.raises(KeyboardInterrupt):
        Run(kind, jobs, ValueStore(file), **mode)
    again = Run(kind, jobs[:2], ValueStore(file), **mode)
    assert again.texts == (["[en] a", "[en] b"] if kind is Editing else ["en a", "en b"])
    assert again.asked == []
    assert (again.costs.answered, again.costs.hits) == (0, 4)


def test_another_version_of_a_method_asks_again_for_the_answers_of_its_own_weights(monkeypatch):
    store = ValueStore(None)
    first, again = Run(Editing, [SAME], store), Run(Editing, [SAME], store)
    assert (again.identity, again.asked) == (first.identity, [])
    monkeypatch.setattr(Editing, "answers_version", 2)
    later = Run(Editing, [SAME], store)
    assert later.identity != first.identity
    assert later.asked == ["[en] same"]


@each_mode
def test_sampled_answers_are_not_kept(mode):
    store, jobs = ValueStore(None), [Job(ask("same"), AnswerDecoding(8, temperature=1.0))] * 2
    assert [len(Run(Recording, jobs, store, **mode).asked) for _ in range(2)] == [2, 2]
    assert len(store) == 0


def test_costs_count_the_work_and_keep_the_time_of_answers_on_their_own():
    costs = Run(Recording, JOBS).costs
    assert (costs.answered, costs.hits, costs.inserted, costs.alone) == (6, 0, 3, [])
    store = ValueStore(None)
    first, second = (Run(Recording, JOBS, store, one_at_a_time=True).costs for _ in range(2))
    assert len(first.alone) == len(JOBS)
    assert (second.alone, second.inserted) == (first.alone, 0)


def test_an_unreadable_image_is_found_before_anything_is_asked():
    def broken():
        raise OSError("truncated")

    store = ValueStore(None)
    with pytest.raises(DataError, match="can't be read"):
        Run(Recording, [Job(ask("a"), DECODING), Job(Query("b", broken), DECODING)], store)
    assert len(store) == 0


def test_another_programs_database_is_refused(tmp_path):
    with closing(sqlite3.connect(tmp_path / "theirs")) as database:
        database.execute("CREATE TABLE theirs (x)")
    with pytest.raises(CultureTasksError, match=r"can't be used as a store \(it is another program's database"):
        ValueStore(tmp_path / "theirs")


def test_decoding_reads_a_request_and_greedy_unsets_what_belongs_to_sampling():
    asked = {"max_new_tokens": 64, "temperature": 0, "do_sample": False, "until": ["\n\n"], "top_p": None}
    assert AnswerDecoding.from_request(asked) == AnswerDecoding(64)
    options = AnswerDecoding(5).options()
    assert options["do_sample"] is False
    assert options["temperature"] is options["top_p"] is options["top_k"] is None
    for nonsense in ({"max_new_tokens": 0}, {"temperature": -1}, {"max_new_tokens": "many"}):
        with pytest.raises(SettingsError, match="generation_kwargs"):
            AnswerDecoding.from_request(nonsense)


class TestQuery:
    def test_key_depends_on_text_image_and_system_message_alone(self):
        image, other = Instance(0, 0).image(), Instance(1, 0).image()
        about = [(image, "q"), (other, "q"), (image, "r"), (image, "q", "system")]
        keys = [Query.about(*each).key for each in about]
        assert len(set(keys)) == 4
        assert Query.about(image.copy(), "q").key == keys[0]
        parts = [{"type": "image", "url": image}, {"type": "text", "text": "q"}]  # as harnesses put them
        messages = [{"role": "system", "content": "system"}, {"role": "user", "content": parts}]
        assert Query("q", lambda: messages).key == keys[3]

    def test_context_goes_after_the_system_message(self):
        query = Query.about(Instance(0, 0).image(), "q", "system").preceded_by([{"type": "text", "text": "context"}])
        system, user = query.messages()
        assert system["content"] == [{"type": "text", "text": "system"}]
        assert [part.get("text") for part in user["content"]] == ["context", None, "q"]

    def test_a_key_reads_each_image_once(self):
        reads = []

        def load():
            reads.append(1)
            return Query.about(Instance(0, 0).image(), "q", "system").messages()

        query, other = Query("q", load), Query.about(Instance(1, 0).image(), "r")
        wrapped = query.preceded_by([*map(image_part, other.pictures()), text_part("context")])
        twice = wrapped.preceded_by([text_part("more")])
        keys = [query.key, wrapped.key, twice.key]
        assert len(reads) == 1
        assert [Query(one.question, one.messages).key for one in (query, wrapped, twice)] == keys
        assert [picture.key for picture in wrapped.pictures()] == [other.pictures()[0].key, query.pictures()[0].key]
        shown = [Instance(1, 0).image().tobytes(), Instance(0, 0).image().tobytes()]
        assert [image.tobytes() for image in wrapped.images()] == shown

    def test_other_media_are_refused(self):
        query = Query("q", lambda: [{"role": "user", "content": [{"type": "video", "url": "x"}]}])
        with pytest.raises(DataError, match="type 'video'"):
            query.messages()
