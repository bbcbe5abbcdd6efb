# Every target works alone on a fresh machine: it needs make and Python 3.11 or newer, no more.
# The virtual environment is made once; stamp files inside it remember what is installed.

VENV ?= .venv
OUT ?= out
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
	</dev/null >/dev/null 2>&1 && echo $$p && break; done)
BIN := $(VENV)/bin
PIP = $(BIN)/python -m pip --disable-pip-version-check --quiet
# What pip does for packages that it copies: without byte code every start compiles all modules.
BYTES = $(BIN)/python -m compileall -q colsynth
TESTS ?= tests

# Tests start hundreds of processes; each would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help run test lint format check bench clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/.run ## Compile an allreduce for two DGX A100, verify it, say where it is
	@$(BIN)/colsynth warm
	@$(BIN)/colsynth compile dgx-a100 --nodes 2 -c allreduce -r msccl -o $(OUT)/allreduce.xml --force
	@$(BIN)/colsynth verify $(OUT)/allreduce.xml -r msccl
	@echo "The schedule is in $(abspath $(OUT))/allreduce.xml"

test: $(VENV)/.test ## Run every test (TESTS=tests/cli for some)
	$(BIN)/colsynth warm
	$(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal $(TESTS)

lint: $(VENV)/.dev ## Check style, formatting and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(VENV)/.dev ## Put the code into the shape that lint asks for
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

check: lint test run ## All that continuous integration does

bench: $(VENV)/.test ## Time both synthesizers beside their bounds and published figures; plot growth
	$(BIN)/python -m tests.bench.bench
	$(BIN)/python -m tests.bench.bench_scale --svg $(OUT)/bench-scale.svg
	$(BIN)/python -m tests.bench.bench_timed --svg $(OUT)/bench-timed.svg
	$(BIN)/python -m tests.bench.bench_simulate
	$(BIN)/python -m tests.bench.bench_predictions

clean: ## Remove the environment, caches and outputs
	rm -rf $(VENV) $(OUT) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# venv writes pip last, so an interrupted start is noticed and repeated.
$(BIN)/pip:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer with venv is needed" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml | $(BIN)/pip
	$(PIP) install --editable .
	$(BYTES)
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/pip
	$(PIP) install --editable '.[test]'
	$(BYTES)
	@touch $(VENV)/.run $@

$(VENV)/.dev: pyproject.toml | $(BIN)/pip
	$(PIP) install --editable '.[test,dev]'
	$(BYTES)
	@touch $(VENV)/.run $(VENV)/.test $@
