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


@pytest.fixture
def method():
    return Recording(CountingModel())


JOBS = [
    Job(ask("c"), DECODING, (ZH,)),
    Job(ask("plain"), DECODING),
    Job(ask("b"), DECODING, (EN,), compare=True),
    Job(ask("a"), DECODING, (ZH,)),
    Job(ask("weather"), DECODING, (EN, ZH), compare=True),
]
MODES = [{}, {"one_at_a_time": True}]


def texts(outcomes):
    return [outcome.answer.text for outcome in outcomes]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Recording, ["zh c", "plain", "en b", "zh a", "weather"]),
        (Editing, ["[zh] c", "plain", "[en] b", "[zh] a", "[en+zh] weather"]),
    ],
)
def test_outcomes_stand_in_the_order_of_the_jobs(kind, expected, mode):
    method = kind(CountingModel())
    outcomes = Runner(method, ValueStore(None), **mode).run(JOBS)
    assert texts(outcomes) == expected
    assert [outcome.base for outcome in outcomes] == [None, None, "b", None, "weather"]
    assert {(outcome.answer.prompt_tokens, outcome.answer.new_tokens) for outcome in outcomes} == {(7, 2)}
    if kind is Editing:
        assert method.model.weights == ""
        return
    assert [outcome.answer.activated for outcome in outcomes] == [0, None, 0, 0, None]
    assert [outcome.answer.similarity for outcome in outcomes] == [0.9, None, 0.9, 0.9, 0.1]
    assert {outcome.answer.threshold for outcome in outcomes} == {None, 0.5}


def test_the_requests_of_one_edited_state_are_one_batch_and_stored_answers_need_no_state():
    method, again, store = Editing(CountingModel()), Editing(CountingModel()), ValueStore(None)
    Runner(method, store).run(JOBS)
    assert sorted(method.model.batches) == [["b"], ["c", "a"], ["plain", "b", "weather"], ["weather"]]
    assert [call for call in method.calls if call != "reset"] == ["zh", "en", "zh"]
    Runner(again, store).run(JOBS)
    assert set(again.calls) == {"reset"}


def test_a_model_of_the_methods_own_answers_what_the_method_gives_it():
    method, again, store = Replacing(CountingModel()), Replacing(CountingModel()), ValueStore(None)
    outcomes = Runner(method, store).run(JOBS)
    assert texts(outcomes) == ["zh c", "plain", "en b", "zh a", "weather"]
    assert sorted(method.model.asked) == ["b", "plain", "weather"]
    assert sorted(method.other.asked) == ["en b", "zh a", "zh c"]
    assert Runner(again, store).run(JOBS) == outcomes
    assert again.model.asked == again.other.asked == []


@pytest.mark.parametrize("kind", [Recording, Editing])
@pytest.mark.parametrize("mode", MODES)
def test_each_insertion_is_done_once_and_chains_go_on(kind, mode):
    method = kind(CountingModel())
    chains = [(EN,), (EN, ZH), (EN, ZH, AR), (ZH,), (EN, ZH, AR), (EN,)]
    jobs = [Job(ask(f"q{n}"), DECODING, chain) for n, chain in enumerate(chains)]
    Runner(method, ValueStore(None), **mode).run(jobs)
    assert [call for call in method.calls if call != "reset"] == ["en", "zh", "ar", "zh"]


def test_later_runs_and_other_methods_find_plain_answers(method):
    store, jobs = ValueStore(None), [Job(ask("same"), DECODING, (EN,), compare=True)] * 2
    plain, base = BaseModelMethod(CountingModel()), BaseModelMethod(CountingModel())
    first = Runner(plain, store).run(jobs)
    assert first[0].answer.text == first[0].base == "same"
    assert plain.model.asked == ["same"]
    assert Runner(method, store).run(jobs)[0].base == "same"
    assert method.model.asked == ["en same"]
    assert Runner(base, store).run(jobs) == first
    assert base.model.asked == []


@pytest.mark.parametrize("kind", [Recording, Editing])
@pytest.mark.parametrize("mode", MODES)
def test_an_interrupt_loses_nothing(kind, mode, tmp_path):
    file = tmp_path / "answers.sqlite3"
    jobs = [Job(ask(name), DECODING, (EN,), compare=name != "crash") for name in ("a", "b", "crash")]
    with pytest.raises(KeyboardInterrupt):
        Runner(kind(CountingModel()), ValueStore(file), **mode).run(jobs)
    again = kind(CountingModel())
    runner = Runner(again, ValueStore(file), **mode)
    expected = ["[en] a", "[en] b"] if kind is Editing else ["en a", "en b"]
    assert texts(runner.run(jobs[:2])) == expected
    assert again.model.asked == []
    assert (runner.costs.answered, runner.costs.found) == (0, 4)


def test_another_version_of_a_method_asks_again_for_the_answers_of_its_own_weights(monkeypatch):
    store = ValueStore(None)

    def asked():
        method = Editing(CountingModel())
        runner = Runner(method, store)
        runner.run([Job(ask("same"), DECODING, (EN,), compare=True)])
        return runner.identity, len(method.model.asked)

    before, _ = asked()
    assert asked() == (before, 0)
    monkeypatch.setattr(Editing, "answers_version", 2)
    after, count = asked()
    assert after != before
    assert count == 1


@pytest.mark.parametrize("mode", MODES)
def test_sampled_answers_are_not_kept(method, mode):
    store = ValueStore(None)
    for _ in range(2):
        Runner(method, store, **mode).run([Job(ask("same"), AnswerDecoding(8, temperature=1.0))] * 2)
    assert len(method.model.asked) == 4
    assert len(store) == 0


def test_costs_count_the_work_and_keep_the_time_of_answers_on_their_own(method):
    batched = Runner(method, ValueStore(None))
    batched.run(JOBS)
    assert (batched.costs.answered, batched.costs.found, batched.costs.inserted) == (6, 0, 3)
    assert batched.costs.alone == []
    store = ValueStore(None)
    first, second = (Runner(Recording(CountingModel()), store, one_at_a_time=True) for _ in range(2))
    for runner in (first, second):
        runner.run(JOBS)
    assert len(first.costs.alone) == len(JOBS)
    assert second.costs.alone == first.costs.alone
    assert second.costs.inserted == 0


def test_an_unreadable_image_is_found_before_anything_is_asked(method):
    def broken():
        raise OSError("truncated")

    with pytest.raises(DataError, match="can't be read"):
        Runner(method, ValueStore(None)).run([Job(ask("a"), DECODING), Job(Query("b", broken), DECODING)])
    assert method.model.asked == []


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
