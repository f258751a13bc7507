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
            rows, said["commits"][wanted["name"]] = load_split(*part, "Put it into a folder.")
            said["answers"] = [row["answer"] for row in rows]
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
    first, cache = repository.revisions["main"], tmp_path / "hf" / "datasets"
    read = {"answers": ["naan"], "commits": {NAME: first}}
    assert reads() == {"downloaded": False, **read}
    hub.asked.clear()
    assert reads() == {"downloaded": True, **read}
    assert hub.asked == [f"HEAD /datasets/{NAME}/resolve/main/README.md"]
    second = {"answers": ["pita"], "commits": {NAME: repository.commit(files("pita"))}}
    assert reads() == {"downloaded": True, **second}
    assert reads(revision="v1") == {"downloaded": False, **read}
    for revision, expected in (("v1", read), (None, second)):  # a tag, a branch
        assert reads(revision=revision, HF_HUB_OFFLINE="1") == {"downloaded": True, **expected}
    shutil.rmtree(next(cache.glob(f"*/*/*/{first}")))
    without = reads(revision=first, HF_HUB_OFFLINE="1")  # offline no other commit is taken for it
    assert (without["downloaded"], without["commits"]) == (False, {})
    assert f"nor the cache ({cache}) has it." in without["error"]
    assert reads(revision="v1") == {"downloaded": False, **read}


def test_a_data_set_is_read_at_one_commit_and_each_split_for_itself(hub, reads):
    hub.repositories[NAME].commit(files("naan", more=("dal", "raita")))
    read = reads(splits=(("arabic", "test"), ("arabic-2", "test"), ("arabic", "all")))
    assert read["answers"] == ["naan", "dal", "raita"]
    assert hub.asked.count(f"HEAD /datasets/{NAME}/resolve/main/README.md") == 1
    offline = reads(splits=(("arabic-2", "test"),), HF_HUB_OFFLINE="1")
    assert (offline["downloaded"], offline["answers"]) == (True, ["dal", "raita"])


def test_a_data_set_without_a_card_has_a_commit_too(hub, reads):
    name = "owner/Bare"
    commit = hub.repositories.setdefault(name, Repository()).commit({"test.jsonl": '{"answer": "naan"}\n'})
    read = reads(name=name, splits=((None, "test"),))
    assert (read["answers"], read["commits"]) == (["naan"], {name: commit})


def test_what_the_hub_does_not_have_or_does_not_show_is_named(hub, reads, tmp_path):
    for wanted, said in (
        ({"revision": "v9"}, f"{NAME} (arabic) at revision 'v9': neither the Hub (404"),
        ({"name": "owner/None"}, "owner/None (arabic): neither the Hub (40"),
        ({"splits": (("greek", "test"),)}, f"{NAME} (greek): neither the Hub (BuilderConfig 'greek' not found."),
    ):
        error = reads(**wanted)["error"]
        assert error.startswith(said)
        assert error.endswith(INSTEAD)
    repository = hub.repositories[NAME]
    repository.gated_for, repository.known_tokens = "hf_granted", ("hf_waiting",)
    assert reads(HF_TOKEN="hf_waiting", HF_HOME=str(tmp_path / "empty"))["error"] == (
        f"{NAME} (arabic): access is granted on request. Ask for it at {PAGE}, then log in with `hf auth login` (or "
        f"set HF_TOKEN) as the user who was granted it. {INSTEAD}"
    )
    assert reads(HF_TOKEN="hf_granted")["commits"] == {NAME: repository.revisions["main"]}


def test_without_a_connection_the_cache_serves_or_the_error_says_what_to_do(hub, reads, tmp_path):
    cache = tmp_path / "empty"
    assert reads()["answers"] == ["naan"]
    second = hub.repositories[NAME].commit(files("pita"))
    hub.breaks_on = "arabic.jsonl"  # a download that breaks off gives no other commit and leaves no half
    read = reads()
    assert read["error"].startswith(f"{NAME} (arabic): neither the Hub (")
    assert not reads(revision=second, HF_HUB_OFFLINE="1")["downloaded"]
    hub.breaks_on = None
    assert reads()["answers"] == ["pita"]
    hub.status = 503  # out of order
    assert reads()["answers"] == ["pita"]
    assert "503" in reads(HF_HOME=str(cache))["error"]
    hub.close()
    assert reads()["answers"] == ["pita"]
    endpoint = hub.address.replace("//", "//name:secret@")
    error = reads(HF_HOME=str(cache), HF_ENDPOINT=endpoint)["error"]
    assert "Connection refused" in error
    assert f"nor the cache ({cache / 'datasets'}) has it. Check" in error
    assert "secret" not in error
