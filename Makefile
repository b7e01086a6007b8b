# `make demo` and `make test` set up all they need in .venv; Python 3.11+ and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-sklearn-lowest
# Four workers, also on two cores: many tests wait for another process.
PYTEST := $(BIN)/python -m pytest -n 4 --dist=worksteal
# Tests start many processes; without bytecode each would compile the package again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-all fast-tests all-tests test-sklearn-lowest lint bench docs clean

demo: $(VENV)/.demo
	$(BIN)/shoestring demo

test: $(VENV)/.test
	$(MAKE) --no-print-directory -j2 lint fast-tests

test-all: $(VENV)/.test
	$(MAKE) --no-print-directory -j2 lint all-tests

fast-tests: $(VENV)/.test
	$(PYTEST) -m "not slow"

all-tests: $(VENV)/.test
	$(PYTEST)

# The newest scikit-learn is the one that `make test` uses.
test-sklearn-lowest: $(LOWEST)/.test
	$(LOWEST)/bin/python -m pytest tests/integrations/test_sklearn_*.py

lint: $(VENV)/.test
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/mypy

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.latency --quick --json
	$(BIN)/python -m benchmarks.regret --quick --json

# The site, in site/: a warning is an error. It needs nothing from the network, to be made or to be read.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -q -E -W --keep-going -d build/doctrees docs site

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[sklearn,plots]"
	touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[sklearn,plots,test]"
	touch $@

$(VENV)/.docs: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[sklearn,plots,docs]"
	touch $@

# torch first and alone, so that botorch finds the version that the peers extra names and brings no other.
$(VENV)/.bench: $(VENV)/.test
	$(BIN)/python -m pip install --quiet -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[bench,peers]"
	touch $@

# pytest 9 does not take the checks of a scikit-learn this old.
$(LOWEST)/.test: pyproject.toml
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --upgrade pip
	$(LOWEST)/bin/python -m pip install --quiet scikit-learn==1.4.0 scipy==1.15.0 "pytest<9" pytest-timeout hypothesis -e .
	touch $@

clean:
	rm -rf $(VENV) $(LOWEST) build dist site .pytest_cache .mypy_cache .ruff_cache
