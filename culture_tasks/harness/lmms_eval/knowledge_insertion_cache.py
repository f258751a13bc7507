"""Makes lmms-eval's ``--use_cache`` tell models of ``knowledge_insertion`` apart.

lmms-eval finds kept responses by the command line's model arguments. A retrained state at the same path, or other
weights in the same folder, would hit the responses of the old ones. So a fingerprint of the model and of the documents
takes the place of these arguments, whether lmms-eval is given the model's name or the model.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_MARK = "_culture_tasks_identity"
_FINGERPRINTS = ("data", "draw")


def identify_in_cache(model_name: str, identity: str) -> None:
    """Names the model of the following runs; safe to call again."""
    from lmms_eval.caching.response_cache import ResponseCache

    identities: dict[str, str] | None = getattr(ResponseCache, _MARK, None)
    if identities is None:
        identities = {}
        setattr(ResponseCache, _MARK, identities)
        ResponseCache.create = classmethod(_with_identity(ResponseCache.create.__func__, identities))
    identities[model_name] = identity


def _with_identity(original: Callable[..., Any], identities: Mapping[str, str]) -> Callable[..., Any]:
    @functools.wraps(original)
    def create(
        cls: Any, cache_root: str, *, model: Any = "", model_args: Any = "", task_dict: Any = None, **options: Any
    ) -> Any:
        name = model if isinstance(model, str) else str(getattr(model, "registered_name", ""))
        if name in identities:
            documents = sorted(_document_fingerprints(task_dict or {}))
            model, model_args = name, json.dumps({"identity": identities[name], "documents": documents})
        return original(cls, cache_root, model=model, model_args=model_args, task_dict=task_dict, **options)

    return create


def _document_fingerprints(tasks: Mapping[Any, Any]) -> Iterator[list[str]]:
    """Yields name and fingerprints of each task whose documents carry some."""
    for name, task in tasks.items():
        if isinstance(task, Mapping):
            yield from _document_fingerprints(task)
            continue
        docs = getattr(task, "eval_docs_no_media", None)
        if docs is not None and len(docs) and all(field in docs.column_names for field in _FINGERPRINTS):
            yield [str(name), *(str(docs[0][field]) for field in _FINGERPRINTS)]
