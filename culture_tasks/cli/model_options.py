"""Options of commands that load a multimodal model under an insertion method."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from culture_tasks.errors import SettingsError

if TYPE_CHECKING:
    from culture_tasks.insertion.core.adapter import ModelOptions

_IMAGE_OPTIONS = ("min_patches", "max_patches", "min_pixels", "max_pixels")


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say how a model is loaded."""
    parser.add_argument("--revision", help="branch, tag or commit on the Hub")
    parser.add_argument("--dtype", default="auto", help="data type of the model (default: the checkpoint's)")
    parser.add_argument("--device", help="where the model runs (default: a GPU if there is one)")
    parser.add_argument("--device-map", help="spread the model over devices, such as auto")
    parser.add_argument("--attn-implementation", help="attention kernels")
    for option in _IMAGE_OPTIONS:
        flag = f"--{option.replace('_', '-')}"
        parser.add_argument(flag, type=int, metavar="N", help="option of the image processor; evaluate with the same")
    parser.add_argument("--trust-remote-code", action="store_true", help="run code of the checkpoint")
    parser.add_argument("--enable-thinking", action="store_true", help="let a reasoning model reason")


def model_options(options: argparse.Namespace, device: str | None) -> ModelOptions:
    """Returns how a model is loaded."""
    from culture_tasks.insertion.core.adapter import ModelOptions

    return ModelOptions(
        revision=options.revision,
        dtype=options.dtype,
        device=device,
        device_map=options.device_map,
        attn_implementation=options.attn_implementation,
        trust_remote_code=options.trust_remote_code,
        template={"enable_thinking": options.enable_thinking},
        images={name: value for name in _IMAGE_OPTIONS if (value := getattr(options, name)) is not None},
    )


def settings_of(flag: str, given: Sequence[str]) -> dict[str, str]:
    """Returns the values of an option that is given as ``NAME=VALUE``, by name.

    Raises:
        SettingsError: If one isn't of that form.
    """
    parsed: dict[str, str] = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise SettingsError(f"insertion: {flag} {setting!r}. Expected OPTION=VALUE, such as {flag} epochs=1.")
        parsed[name] = value
    return parsed
