# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.docs-installed
BESIDE := $(MAKE) --no-print-directory
export MUSTER_SCREENSHOTS ?= $(CURDIR)/build/screenshots
# Images set it: each of the hundreds of processes that tests start would then compile every module again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup system demo test lint unit main second-postgres e2e pictures faults chaos bench fuzz api-fuzz generated-client compare-clients deterministic policy-quality reference docs audit clean

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

$(DOCS_STAMP): requirements-docs.lock $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	@touch $(DOCS_STAMP)

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
	$(BIN)/python -m tests.writing
	@! git grep -nE '^(<<<<<<<|>>>>>>>) ' || { echo 'markers of a merge conflict'; exit 1; }
	@bash tests/audit.sh $(BIN)

unit: setup
	$(BIN)/pytest -q -n auto --dist loadfile -m "not e2e and not comparison and not database and not s3"

# They wait most of the time, for the stock client: more of them at once than there are processors.
e2e: setup system
	$(BIN)/pytest -q -n 4 --dist worksteal -m e2e tests/e2e tests/acceptance tests/browser tests/docs tests/files

# Everything else. The end-to-end tests beside it have due dates to keep, so this gives way to them. Files with few tests
# come last: those that break processes are alone then.
main: setup system
	nice -n 5 $(BIN)/pytest -q -n 3 --dist loadfile --durations 25 --durations-min 4 -m "not e2e and not comparison and not faults"

# What differs from one PostgreSQL to another: statements, plans, migrations. CONTRACT="tests/conformance tests/database" for the rest.
CONTRACT ?= tests/database/test_migrations.py tests/database/test_query_plans.py
second-postgres: setup system
	bash tests/debian_postgres.sh nice -n 5 $(BIN)/pytest -q -n 2 --dist loadfile -m database $(CONTRACT)

# The pictures of the manuals, taken by the browser tests.
pictures: setup system
	MUSTER_PICTURES=$(CURDIR)/docs/pictures $(BIN)/pytest -q tests/browser/test_looks.py tests/browser/test_volunteers.py tests/browser/test_tasks.py

# All of them: nodes and databases are killed again and again, connections are silent for half a minute, a group commit
# takes every course.
faults: setup system
	$(BIN)/pytest -q tests/faults tests/files/test_uploads_to_a_bucket.py tests/properties/test_group_commit.py

test: setup
	@bash tests/side_by_side.sh "$(BESIDE) system" "$(BESIDE) lint docs"
	@bash tests/side_by_side.sh "$(BESIDE) e2e second-postgres" "$(BESIDE) main"

# Breaks a real deployment under load again and again: a third of a minute for each schedule. Number i of seed S is that of seed S + i.
SCHEDULES ?= 20
SEED ?= 1
chaos: setup
	$(BIN)/python -m tests.chaos --schedules $(SCHEDULES) --seed $(SEED)

# The quick ones; the others are named in benchmarks/README.md.
bench: setup
	$(BIN)/python -m benchmarks.decode
	$(BIN)/python -m benchmarks.decide
	$(BIN)/python -m benchmarks.dispatch

# Hostile input, led by coverage: RUNS inputs; the last line says how many, and what was found. 10,000,000 of them take hours.
RUNS ?= 100000
FUZZ_SEED ?= 1
fuzz: setup
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-fuzz.lock
	$(BIN)/python -m tests.fuzz --runs $(RUNS) --seed $(FUZZ_SEED)

# Asks every operation of the API for a hundred things that fit its document, others each time, and a hundred that do
# not, with the rights of each kind of user; takes minutes. EXAMPLES=1000 for more.
EXAMPLES ?= 100
compare-clients: setup system
	$(BIN)/pytest -q -s -m comparison tests/e2e/test_simulated_client.py

api-fuzz: setup
	MUSTER_API_EXAMPLES=$(EXAMPLES) $(BIN)/pytest -q tests/acceptance/test_openapi.py

# A client that a common generator makes from the OpenAPI document submits a batch to a real server.
generated-client: setup
	$(PYTHON) -m venv build/generator && build/generator/bin/pip -q install openapi-python-client==0.29.1
	MUSTER_GENERATOR=$(CURDIR)/build/generator $(BIN)/pytest -q tests/acceptance/generated_client.py

# The whole service on virtual time, its failures drawn by a seed; SEEDS runs, half a second each.
# With EVERY=--every one failure at each call of a small run instead.
deterministic: SEEDS = 1000
deterministic: setup
	PYTHONHASHSEED=0 $(BIN)/python -m tests.deterministic --seeds $(SEEDS) $(EVERY)

# The tables of docs/policy-quality.md: rules on the twelve drawn populations that nothing is tuned on; ten minutes.
policy-quality: setup
	$(BIN)/python -m benchmarks.robustness --half unseen --rules muster,accelerated

# The pages of docs/reference and the modules of the client that are made from the code.
reference: setup
	$(BIN)/python -m cli.manual
	$(BIN)/python -m api.client_types

# The site of the manuals, docs/_build/index.html; a warning is an error, so every page is read each time.
docs: $(DOCS_STAMP)
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --fresh-env --builder html -d build/doctrees docs docs/_build

# Check the locked versions for known flaws; without a network, say that this was not checked.
audit: setup
	@bash tests/audit.sh $(BIN)

clean:
	rm -rf $(VENV) build client/build docs/_build *.egg-info client/*.egg-info .mypy_cache .ruff_cache .pytest_cache
