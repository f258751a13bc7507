#!/usr/bin/env bash
# Prints the path of uv: the machine's own, else one installed into .venv. Fails if there is none to be had.
set -euo pipefail
cd "$(dirname "$0")/.."

if command -v uv; then
  exit 0
fi
if [ ! -x .venv/bin/python ]; then
  echo "no uv on this machine, and no .venv to install it into: run make .venv/installed first, or install uv" >&2
  exit 1
fi
if [ ! -x .venv/bin/uv ]; then
  .venv/bin/python -m pip install --quiet --disable-pip-version-check uv >&2
fi
echo .venv/bin/uv
