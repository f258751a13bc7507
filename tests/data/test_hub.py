"""The Hub: which commit is read, what its cache gives, and what errors say; ``datasets`` is stood in for."""

from __future__ import annotations

from types import SimpleNamespace

import datasets
import huggingface_hub
import pytest

from culture_tasks.data.hub import is_downloaded, load_split
from culture_tasks.errors import DataUnavailableError

NAME, FIRST, SECOND = "geyang627/CARE-eval", "1" * 40, "2" * 40
READ = (NAME, "arabic", "test")


@pytest.fixture
def library(tmp_path, monkeypatch):
    """The cache's folder, what `datasets.load_dataset` is asked for, and what it returns or raises."""
    library = SimpleNamespace(cache=tmp_path, asked=[], answer=None)

    def load_dataset(name, config, *, split, revision):
        library.asked.append((name, config, split, revision))
        if isinstance(library.answer, BaseException):
            raise library.answer
        return datasets.Dataset.from_file(str(library.answer))

    def save(commit, answer, split="test"):
        """Writes a split as `datasets` leaves what it has downloaded."""
        here = tmp_path / "geyang627___care-eval" / "arabic" / "0.0.0" / commit
        datasets.Dataset.from_list([{"answer": answer}]).save_to_disk(here)
        return (here / "data-00000-of-00001.arrow").rename(here / f"care-eval-{split}.arrow")

    library.save = save
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return library


def test_the_commit_that_was_read_is_noted_and_one_in_the_cache_is_read_from_there(library):
    library.answer = library.save(FIRST, "naan")
    library.save(SECOND, "pita")
    for revision, commit, answer in ((None, FIRST, "naan"), (SECOND, SECOND, "pita")):
        data, reading = load_split(*READ, revision, "")
        assert (data[0]["answer"], reading.commits) == (answer, {NAME: commit})
    assert library.asked == [(*READ, None)]


def test_a_branch_or_tag_is_made_a_commit_and_no_other_is_taken_for_it(library, monkeypatch):
    info = SimpleNamespace(sha=SECOND)
    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", lambda self, name, revision: info)
    library.answer = library.save(FIRST, "naan")  # what `datasets` takes where the Hub fails
    with pytest.raises(DataUnavailableError, match=r"at revision 'v1': neither the Hub \(commit 22222222 can't be"):
        load_split(*READ, "v1", "")
    assert library.asked == [(*READ, SECOND)]


def test_data_that_can_not_be_read_are_named_with_what_to_do_and_without_secrets(library):
    library.answer = ConnectionError("no https://name:secret@host/x?sig=hidden\nmore")
    with pytest.raises(DataUnavailableError) as caught:
        load_split(*READ, None, "Put it into a folder.")
    said = str(caught.value)
    assert said.startswith(f"{NAME} (arabic): neither the Hub (no https://")
    assert f"nor the cache ({library.cache}) has it. Check the name and your access at https://hugging" in said
    assert said.endswith("Put it into a folder.")
    assert not [text for text in ("secret", "hidden", "more") if text in said]


def test_a_download_is_found_by_split_and_commit(library):
    library.save(FIRST, "naan", "train")
    assert not is_downloaded(*READ, None)
    library.save(SECOND, "naan", "test-00000-of-00001")
    assert [is_downloaded(*READ, revision) for revision in (None, "main", SECOND, FIRST)] == [True, True, True, False]
