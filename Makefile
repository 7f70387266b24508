# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup system demo test lint unit e2e faults bench clean

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "Muster needs Python 3.11 or later: apt-get install python3.11 (or set PYTHON=...)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || { \
	  echo "making .venv needs the venv module; installing it"; \
	  apt-get update -q && apt-get install -y -q python3.11-venv && $(PYTHON) -m venv --clear $(VENV); } || \
	  { echo "could not make $(VENV): apt-get install python3.11-venv"; exit 1; }
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

# What the end-to-end tests need from the system: the stock client and a second PostgreSQL.
system:
	@bash tests/install_system.sh

demo: setup
	$(BIN)/muster demo

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell

unit: setup
	$(BIN)/pytest -q -m "not e2e and not database"

e2e: setup system
	$(BIN)/pytest -q -m e2e

# All of them: nodes and databases are killed again and again, connections are silent for half a minute.
faults: setup system
	$(BIN)/pytest -q tests/faults

test: setup system lint
	$(BIN)/pytest -q -n 2 --dist loadgroup -m "not e2e and not faults"
	bash tests/debian_postgres.sh $(BIN)/pytest -q -n 2 tests/conformance tests/database
	$(BIN)/pytest -q -n 2 --dist loadgroup -m e2e

# The quick ones; the others are named in benchmarks/README.md.
bench: setup
	$(BIN)/python -m benchmarks.decode
	$(BIN)/python -m benchmarks.decide
	$(BIN)/python -m benchmarks.dispatch

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache
