"""The hooks that lm-eval's task files name (see :mod:`culture_tasks.harness.hooks`).

``hf-multimodal`` and ``vllm-vlm`` put an image in the place of each ``<image>`` of a prompt. The same text in the data
is taken apart, so that data can't add images. API models put all images before the text and would pass the mark on as
text: they get a prompt without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from culture_tasks.benchmarks.interface import Picture, Prompt, Task
from culture_tasks.benchmarks.likelihood import most_likely
from culture_tasks.harness.hooks import images_of, resolve_hook
from culture_tasks.harness.loading import load_for_evaluation
from culture_tasks.harness.scoring import scorer_of

if TYPE_CHECKING:
    import datasets
    from PIL.Image import Image

PLACEHOLDER = "<image>"


def dataset(task: Task, **_: object) -> dict[str, datasets.Dataset]:
    """Loads a task's documents; lm-eval passes the task's metadata, which it doesn't need."""
    return {"test": load_for_evaluation(task.name)}


def text(task: Task, doc: Mapping[str, Any]) -> str:
    """Returns the prompt as one text, with the places of its images."""
    return render_prompt(task.prompt(doc))


def render_prompt(prompt: Prompt) -> str:
    """Returns a prompt as one text, with the places of its images.

    lm-eval has one system message for all documents of a run, so a prompt's own is put before its first text.
    """
    lines: list[str] = []
    system = [prompt.system] if prompt.system else []
    for part in prompt.parts:
        if isinstance(part, Picture):
            lines.append(PLACEHOLDER)
        else:
            lines += [*system, part.replace(PLACEHOLDER, "< image >")]
            system = []
    return "\n".join(lines)


def images_first(prompt: str) -> str:
    """Returns a rendered prompt for models that put all images before it: several are numbered, one needs no mark."""
    before, *parts = prompt.split(PLACEHOLDER)
    if len(parts) < 2:
        return before + "".join(parts).removeprefix("\n")
    return before + "".join(f"Image {number}:{part}" for number, part in enumerate(parts, start=1))


def images(task: Task, doc: Mapping[str, Any]) -> list[Image]:
    """Returns the images that a document's prompt shows, in order."""
    return images_of(task, doc, task.prompt(doc))


def choices(task: Task, doc: Mapping[str, Any]) -> list[str]:
    """Returns the replies whose log-likelihoods are compared."""
    assert task.choices is not None
    return list(task.choices(doc))


def results(task: Task, doc: Mapping[str, Any], responses: Sequence[Any]) -> dict[str, Any]:
    """Returns a document's records, of replies, or of pairs of a log-likelihood and whether it is the greedy one's."""
    if task.choices is not None:
        responses = [most_likely(choices(task, doc), [likelihood for likelihood, _ in responses])]
    return scorer_of(task.name)(doc, responses)


def __getattr__(name: str) -> Any:
    return resolve_hook(name, __name__, dataset, text, images, choices, results)
