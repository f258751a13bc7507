"""The runner: plain answers once each, insertions once each, nothing lost and nothing mixed up."""

from __future__ import annotations

import pytest
from support.tiny_world import Instance

from culture_tasks.errors import CultureTasksError, DataError, SettingsError
from culture_tasks.insertion.adapter import Answer
from culture_tasks.insertion.decoding import Decoding
from culture_tasks.insertion.identity import ModelIdentity
from culture_tasks.insertion.insertion_method import InsertionMethod, MethodConfig
from culture_tasks.insertion.method_registry import method_class, method_names
from culture_tasks.insertion.methods.base import METHOD as BASE
from culture_tasks.insertion.queries import Insertion, Query
from culture_tasks.insertion.runner import Job, Runner
from culture_tasks.insertion.value_store import ValueStore

DECODING = Decoding()


class CountingModel:
    """Answers with the question, and counts."""

    identity = ModelIdentity("a", "weights", "run")

    def __init__(self):
        self.asked = []

    def generate(self, query, decoding):
        self.asked.append(query.question)
        return Answer(f"plain {query.question}", (1,))


class Recording(InsertionMethod):
    """Answers with what is inserted."""

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

    def generate(self, query, decoding):
        if query.question == "crash":
            raise KeyboardInterrupt
        return Answer(f"{query.question} after {'+'.join(self.there)}", (1,))


def ask(question, number=0):
    return Query.about(Instance(0, number).image(), question)


def sample(answer):
    return Insertion(ask(f"about {answer}"), answer)


EN, ZH, AR = sample("en"), sample("zh"), sample("ar")


@pytest.fixture
def method():
    return Recording(CountingModel())


def test_outcomes_stand_in_the_order_of_the_jobs(method):
    jobs = [
        Job(ask("c"), DECODING, (ZH,)),
        Job(ask("plain"), DECODING),
        Job(ask("b"), DECODING, (EN,), compare=True),
        Job(ask("a"), DECODING, (ZH,)),
    ]
    found = Runner(method, ValueStore(None)).run(jobs)
    assert [outcome.text for outcome in found] == ["c after zh", "plain plain", "b after en", "a after zh"]
    assert [outcome.base for outcome in found] == [None, None, "plain b", None]


def test_each_insertion_is_done_once_and_chains_go_on(method):
    chains = [(EN,), (EN, ZH), (EN, ZH, AR), (ZH,), (EN, ZH, AR), (EN,)]
    Runner(method, ValueStore(None)).run([Job(ask(f"q{n}"), DECODING, chain) for n, chain in enumerate(chains)])
    assert [call for call in method.calls if call != "reset"] == ["en", "zh", "ar", "zh"]


def test_the_plain_model_is_asked_before_anything_is_inserted_and_once(method):
    jobs = [Job(ask("same"), DECODING, (EN,), compare=True), Job(ask("same"), DECODING, (ZH,), compare=True)]
    Runner(method, ValueStore(None)).run(jobs)
    assert method.model.asked == ["same"]


def test_another_image_is_another_request(method):
    jobs = [Job(ask("same", number), DECODING) for number in (0, 1)]
    Runner(method, ValueStore(None)).run(jobs)
    assert method.model.asked == ["same", "same"]


def test_later_runs_and_other_methods_find_plain_answers(method, tmp_path):
    file = tmp_path / "answers.sqlite3"
    jobs = [Job(ask("same"), DECODING, (EN,), compare=True)]
    first = Runner(method, ValueStore(file)).run(jobs)
    base = BASE(CountingModel())
    second = Runner(base, ValueStore(file)).run(jobs)
    assert base.model.asked == []
    assert second[0].text == second[0].base == first[0].base


def test_an_interrupt_loses_nothing(tmp_path):
    file = tmp_path / "answers.sqlite3"
    jobs = [Job(ask(name), DECODING, (EN,), compare=True) for name in ("a", "b", "crash")]
    with pytest.raises(KeyboardInterrupt):
        Runner(Recording(CountingModel()), ValueStore(file)).run(jobs)
    again = Recording(CountingModel())
    assert [outcome.text for outcome in Runner(again, ValueStore(file)).run(jobs[:2])] == ["a after en", "b after en"]
    assert again.model.asked == []
    assert again.calls == ["reset", "reset"]


def test_other_decoding_is_another_answer(method, tmp_path):
    store = ValueStore(tmp_path / "answers.sqlite3")
    for tokens in (8, 9, 9):
        Runner(method, store).run([Job(ask("same"), Decoding(tokens))])
    assert len(method.model.asked) == 2


def test_another_version_of_a_method_asks_again_for_its_own_answers_alone(method, tmp_path, monkeypatch):
    store = ValueStore(tmp_path / "answers.sqlite3")
    jobs = [Job(ask("same"), DECODING, (EN,), compare=True)]
    before = Runner(method, store)
    before.run(jobs)
    method.calls.clear()
    Runner(method, store).run(jobs)
    assert "en" not in method.calls
    monkeypatch.setattr(Recording, "answers_version", 2)
    after = Runner(method, store)
    after.run(jobs)
    assert "en" in method.calls
    assert method.model.asked == ["same"]
    assert after.identity != before.identity


def test_every_method_states_the_version_of_its_answers():
    for name in method_names():
        assert method_class(name).answers_version >= 1


def test_sampled_answers_are_not_kept(method):
    store = ValueStore(None)
    for _ in range(2):
        Runner(method, store).run([Job(ask("same"), Decoding(8, temperature=1.0))])
    assert len(method.model.asked) == 2
    assert len(store) == 0


def test_the_plain_method_is_asked_once_a_request():
    base = BASE(CountingModel())
    outcome = Runner(base, ValueStore(None)).run([Job(ask("same"), DECODING, (EN,), compare=True)])[0]
    assert outcome.text == outcome.base == "plain same"
    assert base.model.asked == ["same"]


def test_identity_depends_on_method_and_model(method):
    other_model = CountingModel()
    other_model.identity = ModelIdentity("a", "weights", "another run")
    identities = {
        Runner(each, ValueStore(None)).identity for each in (method, BASE(CountingModel()), Recording(other_model))
    }
    assert len(identities) == 3


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

    def test_a_file_of_another_kind_is_refused(self, tmp_path):
        (tmp_path / "notes").write_text("these are my notes, which are not a database" * 20)
        with pytest.raises(CultureTasksError, match="can't be used as a store"):
            ValueStore(tmp_path / "notes")
        assert (tmp_path / "notes").read_text().startswith("these are my notes")


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

    def test_other_media_are_refused(self):
        query = Query("q", lambda: [{"role": "user", "content": [{"type": "video", "url": "x"}]}])
        with pytest.raises(DataError, match="type 'video'"):
            query.messages()
