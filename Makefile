# `make demo` and `make test` set up all they need in .venv; Python 3.11+ and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-all lint bench clean

demo: $(VENV)/.demo
	$(BIN)/shoestring demo

test: $(VENV)/.test lint
	$(BIN)/python -m pytest -m "not slow"

test-all: $(VENV)/.test lint
	$(BIN)/python -m pytest

lint: $(VENV)/.test
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/mypy

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.latency --quick --json
	$(BIN)/python -m benchmarks.regret --quick --json

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[sklearn,plots]"
	touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[sklearn,plots,test]"
	touch $@

# torch first and alone, so that botorch finds the version that the peers extra names and brings no other.
$(VENV)/.bench: $(VENV)/.test
	$(BIN)/python -m pip install --quiet -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[bench,peers]"
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
