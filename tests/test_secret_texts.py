"""What is secret among model arguments: by name, by place in a URL or a mapping, and by its form."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

from culture_tasks.judges.endpoint.addresses import secrets_of_arguments
from culture_tasks.secret_texts import is_secret_name, shown_arguments, shown_value

SECRET_NAMES = (
    *(
        "hf_token",
        "openai_api_key",
        "access_token",
        "password",
        "api_secret",
        "azure_ad_token",
        "auth",
        "authorization",
    ),
    *("bearer", "client_secret", "credentials", "headers", "cookie", "aws_secret_access_key", "aws_access_key_id"),
    *("pat", "passwd", "pwd", "use_auth_token", "x_api_key", "apiKey", "API-KEY", "HF_TOKEN", "sas", "dsn", "jwt"),
    *("private_key", "refresh_token", "connection_string", "tokenizer_auth_key", "sessionToken", "passphrase"),
)


def test_of_the_arguments_of_both_harnesses_models_those_that_authorise_are_secret():
    names = set(SECRET_NAMES)
    for harness in ("lm_eval", "lmms_eval"):
        for file in Path(find_spec(harness).origin).with_name("models").rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                    names |= {name.arg for name in (*node.args.args, *node.args.kwonlyargs)}
    assert {"max_new_tokens", "tokenizer", "think_end_token", "image_token_id", "video_key"} <= names
    theirs = {"api_key", "auth_token", "header", "watsonx_credentials", "reasoner_api_key_env"}
    assert set(filter(is_secret_name, names)) == {*SECRET_NAMES, *theirs}


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        *((f"pretrained=a/b,{name}=s3cr3t-,x,seed=1", f"pretrained=a/b,{name}=***,seed=1") for name in SECRET_NAMES),
        ('header={"Authorization": "Bearer s3cr3t-","X": "s3cr3t-"},dtype=auto', "header=***,dtype=auto"),
        ("client={'api_key': 's3cr3t-', 'n': 3}", "client={'api_key': ***, 'n': 3}"),
        ("base_url=https://me:s3cr3t-,p@h/v1?x=s3cr3t-,model=m", "base_url=https://h/v1,model=m"),
        ("proxy=socks5://me:s3cr3t-@h:1", "proxy=socks5://h:1"),
        ("engine=sk-proj-s3cr3t-0123456789", "engine=***"),
        *((plain, plain) for plain in ("a=b=c,x=,max_tokens=1,use_auth_token=True,n=t,", "lm_eval:hf,pretrained=a/b")),
    ],
)
def test_arguments_are_shown_without_secrets(arguments, shown):
    assert shown_arguments(arguments) == shown
    if "***" in shown:
        secret = "sk-proj-s3cr3t-0123456789" if "sk-" in arguments else "s3cr3t-"
        assert "s3cr3t-" not in secrets_of_arguments(arguments).hidden(f"an error with {secret}")


def test_a_mapping_is_shown_without_secrets_at_any_depth():
    config = {"model": "hf", "model_args": "token=s3cr3t,seed=1", "cli": [{"wandb_args": "key=s3cr3t"}], "n": 1}
    inner = {"model_args": {"client": {"apiKey": "s3cr3t", "n": 2}, "token": None}}
    hidden = {"model": "hf", "model_args": "token=***,seed=1", "cli": [{"wandb_args": "key=***"}], "n": 1}
    assert shown_value("", config) == hidden
    assert shown_value("", inner) == {"model_args": {"client": {"apiKey": "***", "n": 2}, "token": None}}
