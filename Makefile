# Every verb works as the first command on a fresh clone: it makes .venv when it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := -m pip install --quiet --disable-pip-version-check
PIP := $(BIN)/python $(INSTALL) -c constraints.txt
LOWEST := .venv-lowest
LOWEST_TESTS := tests/nn tests/engine tests/zoo tests/cli/test_app.py tests/train/test_tune.py \
  tests/train/test_track.py tests/report/test_board.py $(wildcard tests/test_*.py)
LOWEST_TESTS := $(filter-out tests/test_tutorials.py,$(LOWEST_TESTS))
SEED ?= 0
COUNT ?= 100
KINDS ?= all

.DEFAULT_GOAL := help
.PHONY: help setup demo test torture lowest lint format docs build bench clean

help: ## show this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(VENV)/.dev ## make .venv with everything a contributor needs

demo: $(VENV)/.user ## train on a generated Minesweeper board and draw who left when
	@$(BIN)/eegnn demo

test: $(VENV)/.dev ## run the tests
	@$(BIN)/python -m pytest -n auto --dist loadfile --durations=20

torture: $(VENV)/.dev ## random kills, damaged files and wrong arguments: SEED=0 COUNT=100 KINDS=all
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.torture $(KINDS) --seed $(SEED) --count $(COUNT)

lowest: ## run the tests of the library with the lowest versions that pyproject.toml allows
	@$(PYTHON) -m venv --clear $(LOWEST)
	@$(LOWEST)/bin/python $(INSTALL) -c constraints-lowest.txt \
	  -e '.[ode,ogb,tune,tensorboard,blocks,hub]' pytest pytest-xdist hypothesis
	@$(LOWEST)/bin/python -m pytest -n auto --dist loadfile $(LOWEST_TESTS)

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

build: $(VENV)/.dev ## build the source archive and the wheel into dist
	@$(BIN)/python -m build

bench: $(VENV)/.user ## measure speed, as ratios within one run
	@$(BIN)/eegnn bench training

clean: ## remove what was built
	rm -rf $(VENV) $(LOWEST) docs/_build docs/jupyter_execute build dist .pytest_cache .mypy_cache .ruff_cache

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
