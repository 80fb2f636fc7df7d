# Every verb works as the first command on a fresh clone: it makes .venv when it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format docs bench clean

help: ## show this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(VENV)/.dev ## make .venv with everything a contributor needs

demo: $(VENV)/.user ## train on a generated Minesweeper board and draw who left when
	@$(BIN)/eegnn demo

test: $(VENV)/.dev ## run the tests
	@$(BIN)/python -m pytest -n auto --dist loadfile --durations=20

lint: $(VENV)/.dev ## check style and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(VENV)/.dev ## put the code in shape
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(VENV)/.docs ## build the documentation into docs/_build
	@$(BIN)/python -m sphinx -W -q -b html docs docs/_build
	@echo "open docs/_build/index.html"

bench: $(VENV)/.user ## measure speed, as ratios within one run
	@$(BIN)/eegnn bench training

clean: ## remove what was built
	rm -rf $(VENV) docs/_build docs/jupyter_execute build dist .pytest_cache .mypy_cache .ruff_cache

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "EEGNN needs Python 3.11 or newer")'
	@echo "making $(VENV) …"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.user: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing EEGNN …"
	@$(PIP) -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.user
	@echo "installing the tools for tests and checks …"
	@$(PIP) -e '.[dev]'
	@touch $@

$(VENV)/.docs: $(VENV)/.user
	@echo "installing the tools for the documentation …"
	@$(PIP) -e '.[docs]'
	@touch $@
