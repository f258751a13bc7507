"""Counting tokens: an encoding where there is one, else a rule, and never a download that hangs."""

from __future__ import annotations

import hashlib
import threading

import pytest
import tiktoken
from huggingface_hub import constants

from culture_tasks.benchmarks.registry import rubric_named
from culture_tasks.costs import token_counts
from culture_tasks.costs.token_counts import counter_for, tokens_by_rule
from culture_tasks.judges.rubric.verdicts import JudgeItem


class Encoding:
    """An encoding of one token a character."""

    name = "o200k_base"

    def encode(self, text, disallowed_special):
        assert disallowed_special == ()
        return list(text)


def test_an_encoding_counts_where_it_is_here_and_offline_nothing_is_downloaded(monkeypatch, tmp_path):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tiktoken, "get_encoding", lambda name: Encoding())
    counter = counter_for("gpt-4o")
    assert counter.name.startswith("a rule (o200k_base isn't available")
    assert counter.count("four") == 1
    address = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
    (tmp_path / hashlib.sha1(address.encode()).hexdigest()).write_bytes(b"")
    counter = counter_for("gpt-4o")
    assert (counter.name, counter.count("<|endoftext|>")) == ("tiktoken's o200k_base", 13)


def test_a_download_that_hangs_or_fails_is_given_up(monkeypatch, tmp_path):
    def fails(name):
        raise ConnectionError("no network")

    hanging = threading.Event()
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(token_counts, "_SECONDS_TO_DOWNLOAD", 0.05)
    for download in (lambda name: hanging.wait(), fails):
        monkeypatch.setattr(tiktoken, "get_encoding", download)
        assert counter_for("gpt-4o").name.startswith("a rule")
    hanging.set()


# Counted with o200k_base, the encoding of gpt-4o and of the models after it.
MEASURED = {
    "ما هي العادات المتبعة عند تقديم القهوة للضيوف في المناسبات العائلية؟": 22,
    "晚辈给长辈敬酒时，一般怎样拿酒杯？请说明这样做的原因和含义。": 27,
    "How do people usually greet older relatives at a family dinner, and why?": 15,
}
OF_RUBRICS = {"care_literacy": 479, "crosscult": 451, "lave": 262}


def test_the_rule_counts_by_script_and_is_near_an_encoding_in_any_script_and_of_a_judge_s_prompt():
    exact = {"": 0, "four": 1, "敬酒时杯子": 4, "كأس كأس": 3}  # 5 / 1.25, and 6 / 3 + 1 / 4, up
    assert {text: tokens_by_rule(text) for text in exact} == exact
    for text, tokens in MEASURED.items():
        assert tokens_by_rule(text) == pytest.approx(tokens, rel=0.21), text
    for name, tokens in OF_RUBRICS.items():
        messages = rubric_named(name).messages(JudgeItem("What?", ("tea",), "coffee"))
        text = "\n".join(message["content"] for message in messages)
        assert tokens_by_rule(text) == pytest.approx(tokens, rel=0.16), name
