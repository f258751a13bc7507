"""The task class of our lm-eval tasks: all images reach the model, and each of several runs has its seed.

lm-eval sends all requests of a type together, decides by the first of them whether images are sent, cuts a document's
images to the model's ``max_images``, and gives every repeat of a request the same seed. None of this is an error to it.
So a model's ``generate_until`` is extended while lm-eval evaluates: it is called for requests of ours with images, of
ours without, and of others in turn, and an error is raised where an image wouldn't reach the model or didn't.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from lm_eval import evaluator, evaluator_utils
from lm_eval.api.instance import Instance
from lm_eval.api.model import CachingLM, hash_args
from lm_eval.api.task import ConfigurableTask
from lm_eval.models.api_models import JsonChatStr, TemplateAPI

from culture_tasks.benchmarks.interface import Task
from culture_tasks.benchmarks.likelihood import most_likely
from culture_tasks.errors import ImagesNotShownError, SettingsError
from culture_tasks.harness import results
from culture_tasks.harness.extending import extend
from culture_tasks.harness.handing_over import handed_over, may_say_nothing, thinking_of
from culture_tasks.harness.hooks import (
    NAME,
    Doc,
    Hook,
    check_requests,
    describe_documents,
    images_of,
    with_defaults,
)
from culture_tasks.harness.loading import load_for_evaluation
from culture_tasks.harness.prompts import images_first, render_prompt
from culture_tasks.harness.records import RECORD, scorer_of
from culture_tasks.harness.session import start_prediction
from culture_tasks.text import failure_in

BY_LIKELIHOOD = "multiple_choice"
"""lm-eval's type of tasks that compare log-likelihoods; their requests are lm-eval's own."""


class Images(list[Any]):
    """A document's images, which know whether they were looked at. Copying or pickling them is looking at all."""

    __slots__ = ("unseen",)

    def __init__(self, images: Iterable[Any] = ()) -> None:
        super().__init__(images)
        self.unseen = set(range(len(self)))

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        found = range(len(self))[key]
        self.unseen.difference_update([found] if isinstance(found, int) else found)
        return super().__getitem__(key)


def _images_of(request: Instance) -> Images:
    images = request.args[2]["visual"] if len(request.args) > 2 else ()
    return images if isinstance(images, Images) else Images()


def _check_image_limit(requests: Iterable[Instance], limit: Any) -> None:
    for request in requests if isinstance(limit, int) else ():
        if (count := len(_images_of(request))) > limit:
            raise ImagesNotShownError(
                f"{request.task_name}: a document shows {count} images, and the model is given {limit} of them. "
                f"Add max_images={count} to --model_args."
            )


def refuse_examples(task: str, shots: int | None) -> None:
    """Refuses few-shot examples of an image task: lm-eval passes on the images of the question alone."""
    if shots:
        raise SettingsError(
            f"{task}: num_fewshot={shots}, but lm-eval shows the examples of an image task without their images. "
            "Write num_fewshot: 0 in its file."
        )


def text(task: Task, doc: Doc) -> str:
    """Returns the prompt as one text, with the places of its images."""
    return render_prompt(task.prompt(doc))


def images(task: Task, doc: Doc) -> list[Any]:
    """Returns the images that a document's prompt shows, in order."""
    return images_of(task, doc, task.prompt(doc))


def choices(task: Task, doc: Doc) -> list[str]:
    """Returns the replies whose log-likelihoods are compared."""
    return list(task.choices(doc)) if task.choices else []


def record(task: Task, doc: Doc, responses: Sequence[Any]) -> dict[str, Any]:
    """Returns a document's record, of replies, or of pairs of a log-likelihood and whether it is the greedy one's."""
    if task.choices is not None:
        responses = [most_likely(choices(task, doc), [likelihood for likelihood, _ in responses])]
    return {RECORD: scorer_of(task.name)(doc, responses)}


def defaults(task: Task) -> dict[str, Any]:
    """Returns what a task file may leave out."""
    decoding, is_sampled = task.decoding, task.decoding.temperature > 0
    generation: dict[str, Any] = {"until": [], "max_gen_toks": decoding.max_tokens, "do_sample": is_sampled}
    if is_sampled:
        generation |= {"temperature": decoding.temperature} | ({"top_p": decoding.top_p} if decoding.top_p else {})
    return {
        "output_type": BY_LIKELIHOOD if task.choices else "generate_until",
        "fewshot_split": "test",  # so that a question is never among its own examples
        "doc_to_text": Hook(task, text),
        **({"doc_to_image": Hook(task, images)} if task.shows_images else {}),
        **({"doc_to_choice": Hook(task, choices)} if task.choices else {"generation_kwargs": generation}),
        "process_results": Hook(task, record),
    }


class CultureTask(ConfigurableTask):  # type: ignore[misc]
    """A task of ours, as its YAML file says; see the module for what is different from lm-eval's own."""

    _images_first = False

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Extends lm-eval's results, loads and checks the data, and makes our request types known to its models."""
        extend(evaluator, "evaluate", lambda original: results.with_run(_with_our_requests(original)))
        extend(evaluator_utils, "_collect_results", _with_task_rows)
        extend(evaluator_utils, "aggregate_groups", _with_group_rows)
        super().__init__(config=with_defaults(config, defaults))
        describe_documents(self)

    def download(self, *_: Any, **__: Any) -> None:
        """Loads the data."""
        self.dataset = {"test": load_for_evaluation(str(self.config.metadata[NAME]))}

    def build_all_requests(self, *, chat_template: Callable[..., Any] | None = None, **options: Any) -> None:
        """Builds the requests, for the model whose chat template is given.

        API models put all images before the text, so their prompts have numbers in place of placeholders.
        """
        check_requests(self, options)
        if self.config.doc_to_image:
            refuse_examples(self.config.task, self.config.num_fewshot)
        model = getattr(chat_template, "__self__", None)
        self._images_first = bool(self.config.doc_to_image) and isinstance(model, TemplateAPI)
        super().build_all_requests(chat_template=chat_template, **options)
        _our_tasks.add(self.config.task)
        limit = getattr(model, "max_images", (self.config.metadata or {}).get("max_images"))
        _check_image_limit(self.instances, limit)

    def fewshot_docs(self) -> Any:
        """Returns the documents that examples are drawn from; none for image tasks, whose images it would decode."""
        return None if self.config.doc_to_image else super().fewshot_docs()

    def doc_to_text(self, doc: Any, doc_to_text: Any = None) -> Any:
        """Returns the prompt, with the images' places marked where the model puts them there."""
        text = super().doc_to_text(doc, doc_to_text)
        return images_first(text) if self._images_first else text

    def doc_to_image(self, doc: Any, doc_to_image: Any = None) -> Images:
        """Returns the document's images."""
        return Images(super().doc_to_image(doc, doc_to_image))

    def override_metric(self, metric_name: str) -> None:  # noqa: ARG002 - lm-eval's signature
        """Switches grading off, and keeps the metrics, whose records are logged: ``--predict_only`` calls this."""
        start_prediction()


_our_tasks: set[str] = set()
"""Names of the tasks of ours that requests were built for."""


def _with_our_requests(original: Callable[..., Any]) -> Callable[..., Any]:
    """Has a model answer our requests by :func:`_answer` while lm-eval evaluates, and its cache keep no failures."""

    def evaluate(*args: Any, **kwargs: Any) -> Any:
        lm: Any = kwargs.get("lm", args[0] if args else None)
        model = lm
        if isinstance(lm, CachingLM):
            model = lm.lm
        generate_until, failures = model.generate_until, list[Instance]()

        def answer(requests: Sequence[Instance], *options: Any, **more: Any) -> list[Any]:
            answers: list[Any] = [None] * len(requests)
            parts: dict[tuple[bool, bool], list[int]] = {}
            for index, request in enumerate(requests):
                is_ours = request.task_name in _our_tasks
                parts.setdefault((is_ours, is_ours and bool(_images_of(request))), []).append(index)
            for (is_ours, _), indices in sorted(parts.items()):
                part = [requests[index] for index in indices]
                found = _answer(model, generate_until, part) if is_ours else generate_until(part, *options, **more)
                for index, text in zip(indices, found, strict=True):
                    answers[index] = text
                failures.extend(part[i] for i, text in enumerate(found) if is_ours and failure_in(text))
            return answers

        model.generate_until = answer
        try:
            return original(*args, **kwargs)
        finally:
            model.generate_until = generate_until
            if isinstance(lm, CachingLM):
                for request in failures:  # so that the next run asks again
                    lm.dbdict.pop(hash_args("generate_until", request.args), None)

    return evaluate


def _answer(model: Any, generate_until: Callable[..., Any], requests: Sequence[Instance]) -> list[Any]:
    """Has a model answer requests of ours, all or none of which have images, if the images reach it."""
    _check_image_limit(requests, getattr(model, "max_images", None))
    with_images = [request for request in requests if _images_of(request)]
    for request in with_images:
        _images_of(request).unseen = set(range(len(_images_of(request))))  # what made a key of them was no look
    if isinstance(model, TemplateAPI):
        if request := next((some for some in with_images if not isinstance(some.args[0], JsonChatStr)), None):
            raise ImagesNotShownError(
                f"{request.task_name}: an API model of lm-eval takes images with chat messages only. "
                "Add --apply_chat_template, and name a model such as local-chat-completions."
            )
        answers = _run_by_run(model, generate_until, requests)
    else:
        answers = generate_until(requests)
    if blind := [request for request in with_images if _images_of(request).unseen]:
        images = _images_of(blind[0])
        raise ImagesNotShownError(
            f"{blind[0].task_name}: the model {type(model).__name__} looked at {len(images) - len(images.unseen)} of "
            f"{len(images)} images of a document, and so with {len(blind) - 1} more. Its answers aren't scored. Use a "
            "model that is shown images: hf-multimodal, vllm-vlm, or an API model of chat completions."
        )
    may_be_empty, thinking = may_say_nothing(model), thinking_of(model)
    is_cut = bool(getattr(model, "think_end_token", None))  # lm-eval has cut thinking, with the mark of its end
    prompts = ["" if is_cut else request.args[0] for request in requests]
    return [
        handed_over(answer, may_be_empty=may_be_empty, thinking=thinking, prompt=prompt)
        for answer, prompt in zip(answers, prompts, strict=True)
    ]


def _run_by_run(model: Any, generate_until: Callable[..., Any], requests: Sequence[Instance]) -> list[str]:
    """Asks an API model for each run by itself, with its own seed: one seed would give one answer again and again.

    lm-eval repeats a request by naming it several times in a row. Run r has the model's seed plus r. A list of stop
    strings that has none is left out: OpenAI is reported to refuse it beside images.
    """

    def create_payload_without_empty_stop(*args: Any, **kwargs: Any) -> dict[str, Any]:
        payload: dict[str, Any] = create_payload(*args, **kwargs)
        if payload.get("stop") == []:
            del payload["stop"]
        return payload

    runs: dict[int, list[int]] = {}
    times: Counter[int] = Counter()
    for index, request in enumerate(requests):
        runs.setdefault(times[id(request)], []).append(index)
        times[id(request)] += 1
    answers = [""] * len(requests)
    first, create_payload = model._seed, model._create_payload
    model._create_payload = create_payload_without_empty_stop
    try:
        for run, indices in runs.items():
            model._seed = first + run
            for index, answer in zip(indices, generate_until([requests[i] for i in indices]), strict=True):
                answers[index] = answer
    finally:
        model._seed, model._create_payload = first, create_payload
    return answers


def _with_task_rows(original: Callable[..., Any]) -> Callable[..., Any]:
    def _collect_results(accumulators: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        collected = original(accumulators, *args, **kwargs)
        tasks = {name: (found["task"], found["raw_metrics"]) for name, found in accumulators.items()}
        configs, better = collected.configs, collected.higher_is_better
        results.write_results(tasks, rows=collected.metrics, configs=configs, better=better)
        return collected

    return _collect_results


def _with_group_rows(original: Callable[..., Any]) -> Callable[..., Any]:
    def aggregate_groups(collected: Any) -> Any:
        with results.without_errors(collected.metrics):
            collected = original(collected)
        for top_group in collected.groups.values():
            for group in (top_group, *top_group.get_all_groups()):
                row = collected.metrics[group.name]
                weights = {
                    entry.metric: entry.weight_by_size
                    for entry in group.aggregate_metric_list or ()
                    if any(key.startswith(f"{entry.metric},") for key in row)
                }
                row["alias"] += results.write_group(row, [task.task_name for task in group.get_all_tasks()], weights)
        return collected

    return aggregate_groups
