#!/usr/bin/env bash
# Builds .venv with the locked versions and this project in editable mode: requirements/install.sh PYTHON
# Nothing outside .venv is touched. Byte code is compiled now, which halves the time that a harness takes to start.
set -euo pipefail
cd "$(dirname "$0")/.."

base_python=${1:?give the Python to build .venv with}
if ! "$base_python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "culture-tasks needs Python 3.11 or newer, found $("$base_python" --version): make BASE_PYTHON=/path/to/python" >&2
  exit 1
fi

if [ ! -x .venv/bin/python ]; then
  echo "Building .venv with $("$base_python" --version)"
  "$base_python" -m venv .venv
fi

if uv=$(requirements/uv.sh); then
  install=("$uv" pip install --python .venv/bin/python --compile-bytecode)
else
  echo "uv can't be had here, so pip installs: the same packages, in two minutes instead of one"
  install=(.venv/bin/python -m pip install --disable-pip-version-check --compile)
fi
"${install[@]}" --requirement requirements/lock.txt
"${install[@]}" --no-deps --editable .
