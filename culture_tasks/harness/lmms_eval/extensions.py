"""Extensions of lmms-eval's functions for our tasks, which all call the original.

* Results are completed (see :mod:`culture_tasks.harness.results`). The costs of a run that a model of ours counts
  (:class:`~culture_tasks.harness.model_costs.ModelCosts`) become an entry of the file too.
* Engine and judge are checked before the model is loaded.
* vLLM models keep to the limit of tokens that a task of ours has.
* Responses that failed are told from answers, and stay out of the response cache, which tells documents apart.

lmms-eval takes an entry ``care_rating`` of a group's file for every metric whose name holds these letters, so that a
group's row has the categories and counts too.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from culture_tasks.harness import results
from culture_tasks.harness.extending import check_engine, extend
from culture_tasks.harness.handing_over import handed_over, may_say_nothing, thinking_of
from culture_tasks.harness.hooks import name_of
from culture_tasks.harness.lmms_eval.plugin import exit_on_error, in_a_command, our_tasks
from culture_tasks.harness.loading import check_judge, loaded_task
from culture_tasks.harness.model_costs import KEY, ModelCosts
from culture_tasks.text import failure_in

_VLLM = {"lmms_eval.models.chat.vllm": "VLLM", "lmms_eval.models.chat.vllm_generate": "VLLMGenerate"}


def extend_commands() -> None:
    """Extends the function that lmms-eval's commands call; safe to call again."""
    from lmms_eval import evaluator

    extend(evaluator, "simple_evaluate", _with_checked_engine_and_judge)


def extend_evaluation() -> None:
    """Extends lmms-eval's vLLM models, and the functions that make its results; safe to call again."""
    from lmms_eval import evaluator
    from lmms_eval.caching.response_cache import ResponseCache

    extend(evaluator, "evaluate", lambda original: results.with_run(_with_handing_over(original)))
    extend(ResponseCache, "create", _with_documents)
    extend(ResponseCache, "_is_valid_response", _with_failures)
    extend(evaluator, "consolidate_results", _with_task_rows)
    extend(evaluator, "consolidate_group_results", _with_group_rows)
    for name, class_name in _VLLM.items():
        if module := sys.modules.get(name):  # by now, if it is the model's
            extend(getattr(module, class_name), "make_one_request", _with_limit_of_the_task)


def _with_checked_engine_and_judge(original: Callable[..., Any]) -> Callable[..., Any]:
    def simple_evaluate(*args: Any, **kwargs: Any) -> Any:
        names = our_tasks(kwargs.get("tasks") or ())
        if in_a_command() and names:
            with exit_on_error():
                check_engine(kwargs.get("model"))
                for name in [] if kwargs.get("predict_only") else names:
                    check_judge(name)
        return original(*args, **kwargs)

    return simple_evaluate


def _with_limit_of_the_task(original: Callable[..., Any]) -> Callable[..., Any]:
    """Has a request of ours end at its task's limit, where lmms-eval's vLLM takes the larger of this and its own 4,096.

    A limit that the user gives to the model is kept.
    """

    def make_one_request(self: Any, request: Any) -> Any:
        messages, sampling = original(self, request)
        task, options = getattr(request.args[1], "__self__", None), request.args[2]
        default = inspect.signature(type(self)).parameters["max_new_tokens"].default
        if task is not None and name_of(task) and self.max_new_tokens == default:
            sampling["max_tokens"] = options["max_new_tokens"]
        return messages, sampling

    return make_one_request


def _with_handing_over(original: Callable[..., Any]) -> Callable[..., Any]:
    """Has a model hand its responses to our tasks over as files can hold them, and failures as such; adds its costs."""
    from lmms_eval.api.instance import GenerationResult, unwrap_generation_output

    def evaluate(*args: Any, **kwargs: Any) -> Any:
        model: Any = kwargs.get("lm", args[0] if args else None)
        generate_until, thinking = model.generate_until, thinking_of(model)

        def answer(requests: Sequence[Any], *options: Any, **more: Any) -> list[Any]:
            responses = generate_until(requests, *options, **more)
            first = {request.task_name: request for request in requests}
            ours = {name for name, request in first.items() if _is_ours(request)}
            return [
                clean(response) if request.task_name in ours else response
                for request, response in zip(requests, responses, strict=True)
            ]

        def clean(response: Any) -> Any:
            if response is None or isinstance(response, list):
                return handed_over(response, may_be_empty=False)
            text, counts = unwrap_generation_output(response)
            may_be_empty = may_say_nothing(model, tokens=counts.output_tokens if counts else None)
            clean_text = handed_over(text, may_be_empty=may_be_empty, thinking=thinking)
            return response if clean_text == text else GenerationResult(clean_text, counts)

        model.generate_until = answer
        try:
            evaluated = original(*args, **kwargs)
        finally:
            model.generate_until = generate_until
        costs = getattr(model, "costs", None)
        if evaluated is not None and isinstance(costs, ModelCosts):
            evaluated[KEY] = costs.model_dump(mode="json")
        return evaluated

    return evaluate


def _is_ours(request: Any) -> bool:
    tasks = (getattr(argument, "__self__", None) for argument in request.args)
    return any(hasattr(task, "config") and name_of(task) for task in tasks)


def _with_documents(original: Callable[..., Any]) -> Callable[..., Any]:
    """Has lmms-eval's response cache tell documents and endpoints apart, not only tasks and arguments."""

    def create(*args: Any, **kwargs: Any) -> Any:
        cache = original(*args, **kwargs)
        prints = cache._task_fingerprints
        addresses = [os.environ.get(name, "") for name in ("OPENAI_API_BASE", "AZURE_OPENAI_API_BASE")]
        for task in tasks_of(kwargs.get("task_dict") or {}):
            if loaded := loaded_task(name_of(task)):
                parts = [prints.get(task.config.task, ""), *addresses, loaded.data.content_key]
                prints[task.config.task] = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
        return cache

    return create


def _with_failures(original: Callable[..., bool]) -> Callable[..., bool]:
    """Keeps responses that failed out of lmms-eval's response cache, so that the next run asks again."""

    def is_valid_response(*args: Any) -> bool:  # a static method, which a cache calls as its own
        response, request_type = args[-2:]
        text = getattr(response, "text", response)
        return original(response, request_type) and not (isinstance(text, str) and failure_in(text))

    return is_valid_response


def _with_task_rows(original: Callable[..., Any]) -> Callable[..., Any]:
    def consolidate_results(outputs: Sequence[Any]) -> Any:
        rows, samples, configs, versions, shots, better = original(outputs)
        tasks = {output.task_name: (output.task, output.sample_metrics) for output in outputs}
        results.write_results(tasks, rows=rows, configs=configs, better=better)
        return rows, samples, configs, versions, shots, better

    return consolidate_results


def _with_group_rows(original: Callable[..., Any]) -> Callable[..., Any]:
    def consolidate_group_results(rows: Any, versions: Any, task_dict: Mapping[Any, Any]) -> Any:
        with results.without_errors(rows):
            consolidated = original(rows, versions, task_dict)
        for group, names in _groups(task_dict):
            row = rows[group.group_name]
            weights = {
                key.partition(",")[0]: entry["weight_by_size"]
                for entry in group.config["aggregate_metric_list"] or ()
                for key in row
                if "," in key and "_stderr" not in key and entry["metric"] in key
            }
            marks = results.write_group(row, names, weights)
            # lmms-eval names a group by its file, not by its row.
            group._config.group_alias = f"{group.group_alias or group.group_name}{marks}"
        return consolidated

    return consolidate_group_results


def _groups(task_dict: Mapping[Any, Any]) -> Iterator[tuple[Any, list[str]]]:
    """Yields every group that has a file, with the names of all tasks below it."""
    for group, inside in task_dict.items():
        if isinstance(inside, Mapping):
            if hasattr(group, "config"):
                yield group, [task.task_name for task in tasks_of(inside)]
            yield from _groups(inside)


def tasks_of(task_dict: Mapping[Any, Any]) -> Iterator[Any]:
    """Yields the tasks that lmms-eval has loaded, also below groups."""
    for inside in task_dict.values():
        if isinstance(inside, Mapping):
            yield from tasks_of(inside)
        else:
            yield inside
