"""Endpoints that users have: what each of them replies, what comes of it, and how many requests it takes."""

from __future__ import annotations

import json

import pytest
from support.fault_server import completion, raw, says
from support.judging import ask

GOOD = "It names the dish of the reference.\nrating=2"
SCORED, REFUSED, FAILED = ("scored", 2.0), ("refused", None), ("failed", None)


def body(content=GOOD, finish_reason="stop", usage=None, **message):
    return completion(content, finish_reason, usage=usage, **message)


def openai_error(message, **fields):
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None, **fields}}


NO_MAX_TOKENS = openai_error(
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    param="max_tokens",
    code="unsupported_parameter",
)
NO_TEMPERATURE = openai_error(
    "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.",
    param="temperature",
    code="unsupported_value",
)
QUOTA = openai_error("You exceeded your current quota, please check your plan.", code="insufficient_quota")
AZURE_FILTER = {
    "error": {
        "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        "type": None,
        "param": "prompt",
        "code": "content_filter",
        "status": 400,
        "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"hate": {"filtered": True}}},
    }
}
VLLM_TOO_LONG = {
    "object": "error",
    "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
    "type": "BadRequestError",
    "param": None,
    "code": 400,
}
OPENROUTER_BUSY = {"error": {"message": "Provider returned error", "code": 429, "metadata": {"provider_name": "X"}}}
GEMINI_BUSY = [{"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}]
THINKING = {"completion_tokens_details": {"reasoning_tokens": 512}}
ROWS = {
    "OpenAI": ([(200, body(usage={"prompt_tokens_details": {"cached_tokens": 256}}))], SCORED, 1),
    "OpenAI, a reasoning model": ([(400, NO_MAX_TOKENS), (400, NO_TEMPERATURE), (200, body())], SCORED, 3),
    "OpenAI, thinking used up the limit": ([(200, body("", "length", THINKING)), (200, body())], SCORED, 2),
    "OpenAI, a refusal": ([(200, body(None, refusal="I'm sorry, I can't help with that."))], REFUSED, 1),
    "OpenAI, no credit": ([(429, QUOTA)], FAILED, 1),
    "OpenAI, a server error": ([(500, openai_error("The server had an error.")), (200, body())], SCORED, 2),
    "Azure": ([(200, {**body(), "prompt_filter_results": [{"prompt_index": 0}]})], SCORED, 1),
    "Azure, its filter": ([(400, AZURE_FILTER)], REFUSED, 1),
    "Azure, its filter on the reply": ([(200, body("", "content_filter"))], REFUSED, 1),
    "vLLM": ([(200, body(reasoning_content=None, tool_calls=[]))], SCORED, 1),
    "vLLM, a reasoning parser": ([(200, body(f"\n\n{GOOD}", reasoning="It fits."))], SCORED, 1),
    "vLLM, no end of thinking": ([(200, body(None, reasoning="Hm")), (200, body())], SCORED, 2),
    "vLLM, aborted": ([(200, body("It", "abort")), (200, body())], SCORED, 2),
    "vLLM, too long": ([(400, VLLM_TOO_LONG)], FAILED, 1),
    "SGLang": ([(200, {**body(), "metadata": {"weight_version": "default"}})], SCORED, 1),
    "SGLang, busy": ([(503, {"object": "error", "message": "The request queue is full."}), (200, body())], SCORED, 2),
    "Ollama": ([(200, {**body(), "system_fingerprint": "fp_ollama"})], SCORED, 1),
    "Ollama, thinking in the reply": ([(200, body(f"<think>\nrating=1?\n</think>\n\n{GOOD}"))], SCORED, 1),
    "Ollama, no such model": ([(404, openai_error('model "x" not found, try pulling it first'))], FAILED, 1),
    "LiteLLM": ([(200, body(provider_specific_fields={"refusal": None}))], SCORED, 1),
    "LiteLLM, a filter": ([(400, openai_error("litellm.ContentPolicyViolationError: no"))], REFUSED, 1),
    "LiteLLM, a time-out": ([(408, openai_error("litellm.Timeout: APITimeoutError")), (200, body())], SCORED, 2),
    "OpenRouter": ([(200, {**body(reasoning=None), "provider": "X"})], SCORED, 1),
    "OpenRouter, a provider is busy": ([(429, OPENROUTER_BUSY), (200, body())], SCORED, 2),
    "OpenRouter, an error in a good reply": ([(200, OPENROUTER_BUSY), (200, body())], SCORED, 2),
    "OpenRouter, an error as the end": ([(200, body("", "error")), (200, body())], SCORED, 2),
    "Gemini": ([(200, body(extra_content={"google": {"thought_signature": "x"}}))], SCORED, 1),
    "Gemini, overloaded": ([(503, GEMINI_BUSY), (200, body())], SCORED, 2),
    "Gemini, its filter": ([(200, body("", "SAFETY"))], REFUSED, 1),
    "Gemini, no content": ([(200, {"choices": [{"finish_reason": "stop", "index": 0}]}), (200, body())], SCORED, 2),
    "DeepSeek, its filter": ([(400, openai_error("Content Exists Risk"))], REFUSED, 1),
    "DashScope": ([(200, {**body(reasoning_content=""), "request_id": "x"})], SCORED, 1),
    "DashScope, its filter": ([(400, openai_error("Bad data.", code="data_inspection_failed"))], REFUSED, 1),
    "DashScope, throttled": ([(429, openai_error("Rate limit.", code="limit")), (200, body())], SCORED, 2),
}


@pytest.mark.parametrize(("replies", "ending", "requests"), ROWS.values(), ids=ROWS)
def test_an_endpoint_s_replies_give_their_verdict_in_as_many_requests(
    server, judge_for, item, replies, ending, requests
):
    server.script(*(raw(json.dumps(content), status) for status, content in replies), says("unexpected"))
    verdict = ask(judge_for(), item)
    assert (verdict.outcome, verdict.score) == ending, verdict
    assert len(server.requests) == requests == verdict.attempts
