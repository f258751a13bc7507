#!/usr/bin/env bash
# What the paper's Table 2 costs on one GPU, in one command of at most eight minutes (speed/on_gpu.py).
#
#   speed/on_gpu.sh wheels [3.12]   on any machine: collects in build/wheels what an image with PyTorch, transformers,
#                                   accelerate and pillow may lack, for that version of Python on Linux x86-64
#   speed/on_gpu.sh [OPTION…]       on the machine with the GPU; needs no network. --tiny tries it on a CPU
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
if [ "${1:-}" = wheels ]; then
    names='annotated-types|iniconfig|platformdirs|pluggy|pydantic|pydantic-core|pytest|typing-inspection'
    pinned=$(grep -hoE "^($names)==[^ ;\\]+" requirements/lock.txt | sort -u)
    # shellcheck disable=SC2086
    exec "$python" -m pip download -q --no-deps --only-binary=:all: --implementation cp --python-version "${2:-3.12}" \
        --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 -d build/wheels $pinned
fi
export PYTHONPATH=$PWD PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1
if compgen -G 'build/wheels/*.whl' >/dev/null; then
    site=$(mktemp -d)
    trap 'rm -rf "$site"' EXIT
    "$python" -m pip install -q --no-index --no-deps --no-compile --target "$site" build/wheels/*.whl
    PYTHONPATH=$PWD:$site
fi
timeout -k 10 460 "$python" speed/on_gpu.py "$@"
