"""MSCKE: a smaller model answers where image and text of a request are in the scope of an edit."""

from __future__ import annotations

from typing import ClassVar

from culture_tasks.insertion.core.edit_scopes import ScopeEncoder
from culture_tasks.insertion.core.insertion_method import MethodConfig
from culture_tasks.insertion.core.scoped_method import ScopedMethod
from culture_tasks.insertion.methods.mscke.clip_encoder import ClipEncoder
from culture_tasks.insertion.methods.mscke.config import MsckeConfig


class MsckeMethod(ScopedMethod):
    """Compares CLIP's vectors: of an edit's image with its question and answer, and of a request's with its question.

    The system prompt is not looked at.
    """

    name: ClassVar[str] = "mscke"
    config_class: ClassVar[type[MethodConfig]] = MsckeConfig
    answers_version: ClassVar[int] = 2
    config: MsckeConfig

    def _make_encoder(self) -> ScopeEncoder:
        config = self.config
        return ClipEncoder(config.encoder, config.max_text_length, self.model.device).scopes(config.fusion)
