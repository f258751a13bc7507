"""The Hub, spoken to over HTTP: which commit is read, what a cache and a mirror give, and what errors say."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
from support.local_hub import LocalHub, Repository

NAME = "geyang627/CARE-eval"
PAGE = f"https://huggingface.co/datasets/{NAME}"
INSTEAD = "Put it into a folder."
CARD = """---
configs:
- config_name: arabic
  data_files: [{split: test, path: arabic.jsonl}, {split: train, path: more.jsonl}]
- config_name: arabic-2
  data_files: [{split: test, path: more.jsonl}]
---
"""

# Reads in a process that is forked for each request, after the slow imports that look at no variable.
READER = """
import json, os, sys, time
import aiohttp, dill, fsspec, httpx, multiprocess, pandas, pyarrow.dataset

def read(wanted):
    from culture_tasks.data.hub import is_downloaded, load_split
    from culture_tasks.errors import DataUnavailableError

    time.sleep = lambda seconds: None  # between huggingface_hub's five attempts
    said = {"commits": {}}
    for config, split in wanted["splits"]:
        part = wanted["name"], config, split, wanted["revision"]
        said["downloaded"] = is_downloaded(*part)
        try:
            rows, reading = load_split(*part, "Put it into a folder.")
            said |= {"answers": [row["answer"] for row in rows], "commits": reading.commits}
        except DataUnavailableError as error:
            said["error"] = str(error)
    return said

for line in sys.stdin:
    if child := os.fork():
        if os.waitpid(child, 0)[1]:
            print("{}", flush=True)
        continue
    wanted = json.loads(line)
    os.environ.update(wanted["environment"])
    print(json.dumps(read(wanted)), flush=True)
    os._exit(0)
"""


@pytest.fixture(scope="module")
def reader():
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV") if name in os.environ}
    with subprocess.Popen(
        [sys.executable, "-c", READER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=kept
    ) as process:
        yield process
        process.stdin.close()


def files(*answers, more=("more",)):
    def lines(texts):
        return "".join(json.dumps({"question": "q", "answer": text}) + "\n" for text in texts)

    return {"README.md": CARD, "arabic.jsonl": lines(answers), "more.jsonl": lines(more)}


@pytest.fixture
def hub():
    one = LocalHub()
    one.repositories[NAME] = Repository()
    one.repositories[NAME].commit(files("naan"), "main", "v1")
    yield one
    one.close()


@pytest.fixture
def reads(tmp_path, hub, reader):
    """Returns what someone reads with a cache of their own."""

    def read(*, revision=None, splits=(("arabic", "test"),), name=NAME, **environment):
        home = {"HOME": str(tmp_path), "HF_HOME": str(tmp_path / "hf"), "HF_ENDPOINT": hub.address}
        environment = {**home, "HF_HUB_DISABLE_TELEMETRY": "1", **environment}
        wanted = {"name": name, "revision": revision, "splits": splits, "environment": environment}
        print(json.dumps(wanted), file=reader.stdin, flush=True)
        return json.loads(reader.stdout.readline())

    return read


def test_the_commit_that_is_read_is_noted_and_a_download_serves_again(hub, reads, tmp_path):
    repository = hub.repositories[NAME]
    first = repository.revisions["main"]
    read = {"answers": ["naan"], "commits": {NAME: first}}
    assert reads() == {"downloaded": False, **read}
    hub.asked.clear()
    assert reads() == {"downloaded": True, **read}
    assert not [path for path in hub.asked if path.startswith("GET") and path.endswith(".jsonl")]
    second = {"answers": ["pita"], "commits": {NAME: repository.commit(files("pita"))}}
    assert reads() == {"downloaded": True, **second}
    assert reads(revision="v1") == {"downloaded": True, **read}
    assert reads(revision=first) == {"downloaded": True, **read}
    shutil.rmtree(next((tmp_path / "hf" / "datasets").glob(f"*/*/*/{first}")))
    assert reads(HF_HUB_OFFLINE="1") == {"downloaded": True, **second}
    without = reads(revision=first, HF_HUB_OFFLINE="1")  # offline no other commit is taken for it
    assert (without["downloaded"], without["commits"]) == (False, {})
    assert (
        f"(commit {first[:8]} can't be downloaded) nor the cache ({tmp_path / 'hf' / 'datasets'}) has it."
        in (without["error"])
    )


def test_each_split_is_read_for_itself_also_of_a_data_set_without_a_card(hub, reads):
    hub.repositories[NAME].commit(files("naan", more=("dal", "raita")))
    assert reads(splits=(("arabic", "all"),))["answers"] == ["naan", "dal", "raita"]
    offline = reads(splits=(("arabic-2", "test"),), HF_HUB_OFFLINE="1")
    assert (offline["downloaded"], "answers" in offline) == (False, False)
    name = "owner/Bare"
    commit = hub.repositories.setdefault(name, Repository()).commit({"test.jsonl": '{"answer": "naan"}\n'})
    read = reads(name=name, splits=((None, "test"),))
    assert (read["answers"], read["commits"]) == (["naan"], {name: commit})


def test_data_that_can_not_be_read_are_named_with_what_to_do(hub, reads, tmp_path):
    for wanted, said in (
        ({"revision": "v9"}, f"{NAME} (arabic) at revision 'v9': neither the Hub (404"),
        ({"name": "owner/None"}, "owner/None (arabic): neither the Hub (Dataset 'owner/None' doesn't exist"),
        ({"splits": (("greek", "test"),)}, f"{NAME} (greek): neither the Hub (BuilderConfig 'greek' not found."),
    ):
        error = reads(**wanted)["error"]
        assert error.startswith(said)
        assert error.endswith(INSTEAD)
    repository = hub.repositories[NAME]
    repository.gated_for, repository.known_tokens = "hf_granted", ("hf_waiting",)
    error = reads(HF_TOKEN="hf_waiting", HF_HOME=str(tmp_path / "empty"))["error"]
    assert "is a gated dataset on the Hub. Visit the dataset page" in error
    assert f"and your access at {PAGE} (`hf auth login`, HF_TOKEN)" in error
    assert reads(HF_TOKEN="hf_granted")["commits"] == {NAME: repository.revisions["main"]}


def test_without_a_connection_the_cache_serves_or_the_error_says_so(hub, reads, tmp_path):
    assert reads()["answers"] == ["naan"]
    second = hub.repositories[NAME].commit(files("pita"))
    hub.breaks_on = "arabic.jsonl"  # a download that breaks off gives no other commit and leaves no half
    assert reads()["error"].startswith(f"{NAME} (arabic): neither the Hub (")
    assert not reads(revision=second, HF_HUB_OFFLINE="1")["downloaded"]
    hub.breaks_on = None
    assert reads()["answers"] == ["pita"]
    hub.close()
    assert reads()["answers"] == ["pita"]
    endpoint = hub.address.replace("//", "//name:secret@")
    error = reads(HF_HOME=str(tmp_path / "empty"), HF_ENDPOINT=endpoint)["error"]
    assert f"nor the cache ({tmp_path / 'empty' / 'datasets'}) has it. Check" in error
    assert "secret" not in error
