"""The task class of our lmms-eval tasks, for chat and simple model types.

A document whose model wasn't shown all of its images has no score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import datasets
from lmms_eval.api.task import ConfigurableMessagesTask, ConfigurableTask

from culture_tasks.benchmarks.interface import Task
from culture_tasks.errors import ImagesNotShownError, SettingsError
from culture_tasks.harness.decoded import DecodedDataset
from culture_tasks.harness.hooks import (
    NAME,
    Doc,
    Hook,
    check_requests,
    describe_documents,
    images_of,
    name_of,
    with_defaults,
)
from culture_tasks.harness.lmms_eval.plugin import exit_on_error, task_type
from culture_tasks.harness.loading import load_for_evaluation, loaded_task
from culture_tasks.harness.prompts import Message, conversation, images_first, render_prompt
from culture_tasks.harness.records import RECORD, scorer_of
from culture_tasks.harness.session import current_session, start_prediction

if TYPE_CHECKING:
    from PIL.Image import Image


def text(task: Task, doc: Doc) -> str:
    """Returns the prompt as one text, for simple model types."""
    return images_first(render_prompt(task.prompt(doc)))


def visuals(task: Task, doc: Doc) -> list[Image]:
    """Returns the images that a document's prompt shows, in order, for simple model types."""
    return watch_images(doc, images_of(task, doc, task.prompt(doc))) if task.shows_images else []


def messages(task: Task, doc: Doc) -> list[Message]:
    """Returns the prompt as messages, for chat model types: the system message, then texts and images in order."""
    prompt = task.prompt(doc)
    return conversation(prompt, watch_images(doc, images_of(task, doc, prompt)) if task.shows_images else [])


def record(task: Task, doc: Doc, responses: Sequence[Any]) -> dict[str, Any]:
    """Returns a document's record; refuses one whose images were handed out and not all looked at."""
    if task.shows_images:
        refuse_unseen(doc)
    return {RECORD: scorer_of(task.name)(doc, responses)}


def defaults(task: Task) -> dict[str, Any]:
    """Returns what a task file may leave out."""
    decoding = task.decoding
    return {
        "output_type": "generate_until",
        "doc_to_text": Hook(task, text),
        "doc_to_visual": Hook(task, visuals),
        "doc_to_messages": Hook(task, messages),
        "generation_kwargs": {
            "until": [],
            "max_new_tokens": decoding.max_tokens,
            "do_sample": decoding.temperature > 0,
            "temperature": decoding.temperature,
            **({} if decoding.top_p is None else {"top_p": decoding.top_p}),
            "num_beams": 1,
        },
        "process_results": Hook(task, record),
    }


def watch_images(doc: Mapping[str, Any], images: Iterable[Image]) -> list[Image]:
    """Returns a document's images, which remember whether they are looked at.

    Some model types look at the first image alone (the simple ``internvl``) or at none (a model that takes the text out
    of the messages). A document whose images nobody asks for has its answer from lmms-eval's cache, or from a model
    that reads no document at all, such as ``dummy``: it is scored.
    """
    copies = [image.copy() for image in images]  # other documents may show the same ones
    unseen = set(range(len(copies)))
    for index, image in enumerate(copies):
        _watch(image, partial(unseen.discard, index))
    looks, key = current_session().looks, _key(doc)
    if copies and (key not in looks or looks[key][1]):
        looks[key] = (len(copies), unseen)
    return copies


def _watch(image: Image, note: Callable[[], None]) -> None:
    """Makes an image note that it is read: everything that reads pixels calls ``load`` first."""
    load = image.load

    def load_and_note() -> Any:
        note()
        return load()

    image.load = load_and_note  # type: ignore[method-assign]  # a subclass would be another type to some models


def refuse_unseen(doc: Mapping[str, Any]) -> None:
    """Refuses a document whose images were handed out and not all looked at."""
    number, unseen = current_session().looks.get(_key(doc), (0, ()))
    with exit_on_error():
        if unseen:
            raise ImagesNotShownError(
                f"lmms-eval: the model looked at {number - len(unseen)} of {number} images of "
                f"document {doc.get('id', '')!r:.80}. Its answers aren't scored. Use a model type that is shown all of "
                "them: a chat type, such as internvl_hf, qwen2_5_vl or vllm."
            )


def _key(doc: Mapping[str, Any]) -> int:
    """Returns the key of a document: its short values, since variants of a question have the same id."""
    return hash(tuple(str(value) for name, value in doc.items() if isinstance(value, (str, int)) or name == "examples"))


class CultureTask(ConfigurableMessagesTask):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """A task of ours, as its YAML file says.

    lmms-eval can only load by ``datasets.load_dataset``, and repeats five times whatever fails in loading or scoring:
    this class does neither.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Loads and checks the data, for the type of model that lmms-eval is loading tasks for."""
        self._is_chat = task_type.get() == "chat"
        super().__init__(config=with_defaults(config, defaults))
        describe_documents(self)

    def download(self, *_: Any, **__: Any) -> None:
        """Loads the data, and has them without images for scoring."""
        name = str(self.config.metadata[NAME])
        with_images, loaded = load_for_evaluation(name), loaded_task(name)
        assert loaded is not None
        without = DecodedDataset(loaded.documents.rows)
        if (process := self.config.process_docs) is not None:
            with_images, without = process(with_images), process(without)
        self.dataset = datasets.DatasetDict({"test": with_images})
        self.dataset_no_image = datasets.DatasetDict({"test": without})

    def build_all_requests(self, *args: Any, **options: Any) -> None:
        """Builds the requests, once it is sure that somebody can grade."""
        with exit_on_error():
            if self.config.num_fewshot:
                raise SettingsError(
                    f"{self.config.task}: num_fewshot={self.config.num_fewshot}, but lmms-eval gives no examples to "
                    "a task that writes its own messages. Write num_fewshot: 0 in its file."
                )
            check_requests(self, options)
        super().build_all_requests(*args, **options)

    def construct_requests(self, doc_id: int, ctx: str, **options: Any) -> Any:
        """Returns a document's request in the form of the model's type."""
        kind = ConfigurableMessagesTask if self._is_chat else ConfigurableTask
        return kind.construct_requests(self, doc_id, ctx, **options)

    def process_results(self, doc: Doc, results: Sequence[Any], **options: Any) -> Any:
        """Returns a document's record, or what a user's function makes of the responses."""
        if name_of(self) is None:
            return super().process_results(doc, results, **options)
        texts = results[0] if isinstance(results[0], list) else results
        return self.config.process_results(doc, [text.strip() if isinstance(text, str) else text for text in texts])

    def override_metric(self, metric_name: str) -> None:
        """Switches grading off, and keeps the records: ``--predict_only`` calls this."""
        if name_of(self) is None:
            super().override_metric(metric_name)
        else:
            start_prediction()
