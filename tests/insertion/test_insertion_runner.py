"""The runner: plain answers once each, insertions once each, nothing lost and nothing mixed up."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
import torch
from support.tiny_world import Instance

from culture_tasks.errors import CultureTasksError, DataError, SettingsError
from culture_tasks.insertion.core.adapter import Answer
from culture_tasks.insertion.core.decoding import Decoding
from culture_tasks.insertion.core.identity import ModelIdentity
from culture_tasks.insertion.core.insertion_method import InsertionMethod, MethodConfig, Route
from culture_tasks.insertion.core.queries import Insertion, Query, image_part, text_part
from culture_tasks.insertion.core.runner import Job, Runner
from culture_tasks.insertion.core.value_store import ValueStore
from culture_tasks.insertion.methods.base.method import BaseModelMethod

DECODING = Decoding()


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
        return Answer(text, prompt_tokens=7, new_tokens=2)

    def answers(self, queries, decoding, batch_size):
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
def test_outcomes_stand_in_the_order_of_the_jobs(method, mode):
    found = Runner(method, ValueStore(None), **mode).run(JOBS)
    assert texts(found) == ["zh c", "plain", "en b", "zh a", "weather"]
    assert [outcome.base for outcome in found] == [None, None, "b", None, "weather"]
    assert [outcome.answer.activated for outcome in found] == [0, None, 0, 0, None]
    assert [outcome.answer.similarity for outcome in found] == [0.9, None, 0.9, 0.9, 0.1]
    assert {outcome.answer.threshold for outcome in found} == {None, 0.5}
    assert {(outcome.answer.prompt_tokens, outcome.answer.new_tokens) for outcome in found} == {(7, 2)}


@pytest.mark.parametrize("mode", MODES)
def test_edited_weights_answer_and_are_gone_afterwards(mode):
    method = Editing(CountingModel())
    found = Runner(method, ValueStore(None), **mode).run(JOBS)
    assert texts(found) == ["[zh] c", "plain", "[en] b", "[zh] a", "[en+zh] weather"]
    assert [outcome.base for outcome in found] == [None, None, "b", None, "weather"]
    assert method.model.weights == ""


def test_the_requests_of_one_edited_state_are_one_batch():
    method = Editing(CountingModel())
    Runner(method, ValueStore(None)).run(JOBS)
    assert sorted(method.model.batches) == [["b"], ["c", "a"], ["plain", "b", "weather"], ["weather"]]
    assert [call for call in method.calls if call != "reset"] == ["zh", "en", "zh"]


def test_what_is_left_alone_is_looked_up(method):
    jobs = [Job(ask("weather"), DECODING, (EN,), compare=True), Job(ask("weather"), DECODING, (ZH,))]
    assert texts(Runner(method, ValueStore(None)).run(jobs)) == ["weather", "weather"]
    assert method.model.asked == ["weather"]


def test_a_model_of_the_methods_own_answers_what_the_method_gives_it():
    method = Replacing(CountingModel())
    store = ValueStore(None)
    found = Runner(method, store).run(JOBS)
    assert texts(found) == ["zh c", "plain", "en b", "zh a", "weather"]
    assert sorted(method.model.asked) == ["b", "plain", "weather"]
    assert sorted(method.other.asked) == ["en b", "zh a", "zh c"]
    again = Replacing(CountingModel())
    assert Runner(again, store).run(JOBS) == found
    assert again.model.asked == again.other.asked == []


@pytest.mark.parametrize("kind", [Recording, Editing])
@pytest.mark.parametrize("mode", MODES)
def test_each_insertion_is_done_once_and_chains_go_on(kind, mode):
    method = kind(CountingModel())
    chains = [(EN,), (EN, ZH), (EN, ZH, AR), (ZH,), (EN, ZH, AR), (EN,)]
    jobs = [Job(ask(f"q{n}"), DECODING, chain) for n, chain in enumerate(chains)]
    Runner(method, ValueStore(None), **mode).run(jobs)
    assert [call for call in method.calls if call != "reset"] == ["en", "zh", "ar", "zh"]


def test_later_runs_and_other_methods_find_plain_answers(method, tmp_path):
    file = tmp_path / "answers.sqlite3"
    jobs = [Job(ask("same"), DECODING, (EN,), compare=True)]
    first = Runner(method, ValueStore(file)).run(jobs)
    base = BaseModelMethod(CountingModel())
    second = Runner(base, ValueStore(file)).run(jobs)
    assert base.model.asked == []
    assert second[0].answer.text == second[0].base == first[0].base


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


def test_a_state_whose_answers_are_there_is_not_made(tmp_path):
    file = tmp_path / "answers.sqlite3"
    Runner(Editing(CountingModel()), ValueStore(file)).run(JOBS)
    again = Editing(CountingModel())
    Runner(again, ValueStore(file)).run(JOBS)
    assert set(again.calls) == {"reset"}


@pytest.mark.parametrize("kind", [Editing, Replacing])
def test_another_version_of_a_method_asks_again_for_its_own_answers_alone(kind, tmp_path, monkeypatch):
    store = ValueStore(tmp_path / "answers.sqlite3")
    jobs = [Job(ask("same"), DECODING, (EN,), compare=True)]

    def asked():
        method = kind(CountingModel())
        runner = Runner(method, store)
        runner.run(jobs)
        return runner.identity, len(method.model.asked) + len(getattr(method, "other", method.model).asked)

    before, _ = asked()
    assert asked() == (before, 0)
    monkeypatch.setattr(kind, "answers_version", 2)
    after, count = asked()
    assert after != before
    assert count == (2 if kind is Editing else 1)  # an edited model is the model itself, and so counted twice


@pytest.mark.parametrize("mode", MODES)
def test_sampled_answers_are_not_kept(method, mode):
    store = ValueStore(None)
    for _ in range(2):
        Runner(method, store, **mode).run([Job(ask("same"), Decoding(8, temperature=1.0))] * 2)
    assert len(method.model.asked) == 4
    assert len(store) == 0


def test_the_plain_method_is_asked_once_a_request():
    base = BaseModelMethod(CountingModel())
    outcome = Runner(base, ValueStore(None)).run([Job(ask("same"), DECODING, (EN,), compare=True)])[0]
    assert outcome.answer.text == outcome.base == "same"
    assert base.model.asked == ["same"]


def test_identity_depends_on_method_and_model(method):
    methods = (method, BaseModelMethod(CountingModel()), Recording(CountingModel("another run")))
    assert len({Runner(each, ValueStore(None)).identity for each in methods}) == 3


def test_costs_tell_what_was_done(method):
    runner = Runner(method, ValueStore(None))
    runner.run(JOBS)
    assert (runner.costs.answered, runner.costs.found, runner.costs.inserted) == (6, 0, 3)
    assert runner.costs.alone == []


def test_answers_on_their_own_have_their_time_kept(method, tmp_path):
    file = tmp_path / "answers.sqlite3"
    first = Runner(method, ValueStore(file), one_at_a_time=True)
    first.run(JOBS)
    second = Runner(Recording(CountingModel()), ValueStore(file), one_at_a_time=True)
    second.run(JOBS)
    assert len(first.costs.alone) == len(JOBS)
    assert second.costs.alone == first.costs.alone
    assert second.costs.inserted == 0


def test_an_unreadable_image_is_found_before_anything_is_asked(method):
    def broken():
        raise OSError("truncated")

    with pytest.raises(DataError, match="can't be read"):
        Runner(method, ValueStore(None)).run([Job(ask("a"), DECODING), Job(Query("b", broken), DECODING)])
    assert method.model.asked == []


class TestStore:
    def test_keeps_the_first_value(self, tmp_path):
        with ValueStore(tmp_path / "folder" / "kept.sqlite3") as store:
            store.put("key", b"first")
            store.put("key", b"second")
            assert store.get("key") == b"first"
            assert store.get("other") is None

    def test_another_process_sees_it_at_once(self, tmp_path):
        first, second = ValueStore(tmp_path / "kept"), ValueStore(tmp_path / "kept")
        first.put("key", b"value")
        assert second.get("key") == b"value"
        first.close()
        second.close()

    def test_a_file_that_is_no_database_is_set_aside(self, tmp_path, caplog):
        (tmp_path / "kept").write_text("no database" * 100)
        with ValueStore(tmp_path / "kept") as store:
            store.put("key", b"value")
            assert len(store) == 1
        [aside] = tmp_path.glob("kept.damaged-*")
        assert aside.read_text() == "no database" * 100
        assert f"set aside as {aside.name}; 0 rows were saved" in caplog.text

    def test_a_file_of_another_program_is_refused(self, tmp_path):
        with closing(sqlite3.connect(tmp_path / "theirs")) as database:
            database.execute("CREATE TABLE theirs (x)")
        with pytest.raises(CultureTasksError, match=r"can't be used as a store \(it is another program's database"):
            ValueStore(tmp_path / "theirs")


class TestDecoding:
    def test_reads_a_request(self):
        asked = {"max_new_tokens": 64, "temperature": 0, "do_sample": False, "until": ["\n\n"], "top_p": None}
        assert Decoding.from_request(asked) == Decoding(64)

    def test_greedy_unsets_what_belongs_to_sampling(self):
        options = Decoding(5).options()
        assert options["do_sample"] is False
        assert options["temperature"] is options["top_p"] is options["top_k"] is None

    @pytest.mark.parametrize("asked", [{"max_new_tokens": 0}, {"temperature": -1}, {"max_new_tokens": "many"}])
    def test_refuses_what_makes_no_sense(self, asked):
        with pytest.raises(SettingsError, match="generation_kwargs"):
            Decoding.from_request(asked)


class TestQuery:
    def test_key_depends_on_text_image_and_system_message(self):
        image, other = Instance(0, 0).image(), Instance(1, 0).image()
        keys = {
            Query.about(image, "q").key,
            Query.about(other, "q").key,
            Query.about(image, "r").key,
            Query.about(image, "q", "system").key,
        }
        assert len(keys) == 4
        assert Query.about(image.copy(), "q").key in keys

    def test_a_harness_message_is_the_same_request(self):
        image = Instance(0, 0).image()
        parts = [{"type": "image", "url": image}, {"type": "text", "text": "q"}]
        messages = [{"role": "system", "content": "system"}, {"role": "user", "content": parts}]
        assert Query("q", lambda: messages).key == Query.about(image, "q", "system").key

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
        again = [Query(each.question, each.messages) for each in (query, wrapped, twice)]
        assert [each.key for each in again] == keys
        assert [picture.key for picture in wrapped.pictures()] == [other.pictures()[0].key, query.pictures()[0].key]
        assert [image.tobytes() for image in wrapped.images()] == [
            image.tobytes() for image in (Instance(1, 0).image(), Instance(0, 0).image())
        ]

    def test_other_media_are_refused(self):
        query = Query("q", lambda: [{"role": "user", "content": [{"type": "video", "url": "x"}]}])
        with pytest.raises(DataError, match="type 'video'"):
            query.messages()
