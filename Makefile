# A bare machine with make and python3 (3.11 or newer, with venv) is enough; everything else goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

DOWNSTREAM := .venv-downstream

# The distributions that complete kschedfw. The others in plugins/ are policies, which .venv stays without: tests and docs
# list what is installed.
PARTS := plugins/kschedfw-devices plugins/kschedfw-kubernetes plugins/kschedfw-apiserver plugins/kschedfw-advisor plugins/kschedfw-lab plugins/kschedfw-legacy plugins/kschedfw-replay plugins/kschedfw-mcp
POLICIES := $(filter-out $(PARTS:%=%/),$(wildcard plugins/*/))

SAMPLE := examples/sample-cluster/
SEED ?= 1
SECONDS ?= 600
DIST ?=
CORE := kschedfw kschedfw_command.py pytest_kschedfw.py tests conftest.py .ci/*.py
TESTS := tests $(PARTS:%=%/tests)

# `make test` runs the tests in several processes, which collect different ones: workers of pytest-xdist each collect all,
# which takes a fifth of a minute, and as long again in a fresh clone. What takes longest is begun first.
RUNS := kubernetes recorded engine commands others lab advisor replay small
RUN_recorded := tests/conformance tests/plugins
RUN_engine := tests/framework tests/scheduler
RUN_kubernetes := plugins/kschedfw-kubernetes/tests
RUN_advisor := plugins/kschedfw-advisor/tests
RUN_lab := plugins/kschedfw-lab/tests
RUN_replay := plugins/kschedfw-replay/tests
RUN_commands := tests/cli tests/deploy tests/distributions tests/docs tests/examples tests/testing
RUN_others := tests $(patsubst %,--ignore=%,$(RUN_recorded) $(RUN_engine) $(RUN_commands))
RUN_small := $(filter-out $(foreach each,$(RUNS),$(RUN_$(each))),$(PARTS:%=%/tests))
PODS ?= 50000
DECISIONS ?= 200000
KIND ?= decisions
AMOUNT ?= 50000
APPEND ?=
ONLY ?=
AT_MOST ?=
FAST ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The tests start many processes, each of which would compile kschedfw anew.
unexport PYTHONDONTWRITEBYTECODE

.DELETE_ON_ERROR:
.PHONY: help demo docs quick test downstream sdists nightly verify planted waking learned churn soak fuzz benchmark figures lint fmt changelog build release clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.installed-cli ## simulate the sample cluster (SEED=1)
	$(BIN)/kschedfw simulate $(SAMPLE) --seed $(SEED)

docs: $(VENV)/.installed-dev ## make the documentation's site in build/docs
	@$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs
	@echo build/docs/index.html

quick: $(VENV)/.installed-dev ## for every save: lint of the core, and the unit tests that the uncommitted changes can break
	@$(MAKE) --no-print-directory --jobs=2 types affected

.PHONY: types affected
types: $(VENV)/.installed-dev
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy $(CORE)
	@$(BIN)/lint-imports >/dev/null || $(BIN)/lint-imports

affected: $(VENV)/.installed-dev
	@tests="$$($(BIN)/python .ci/affected.py $(TESTS))"; \
	if [ -z "$$tests" ]; then echo 'No test imports what changed.'; else \
		$(BIN)/python -m pytest -q $$tests -m 'not slow and not nightly' --numprocesses auto --dist worksteal; fi

test: $(VENV)/.installed-dev ## all checks: all tests, and beside them lint, then other distributions' and the documentation's
	@$(MAKE) --no-print-directory $(ALL_CORES) lint downstreams pages suites

# One process more than there are cores: one waits for servers, leases and signals in up to a fifth of its time. A run
# that fails doesn't keep the others from running.
ALL_CORES = --keep-going --jobs="$$($(BIN)/python -c 'import os; print((os.cpu_count() or 1) + 1)')"

.PHONY: suites pages downstreams $(RUNS:%=suite-%)
suites: $(RUNS:%=suite-%)

$(RUNS:%=suite-%): suite-%: $(VENV)/.installed-dev
	@# With this configuration also where all tests are of one distribution, whose own has no fixtures of tests/: without
	@# those, collections of garbage double the time of tests that come late.
	@told="$$($(BIN)/python -m pytest --config-file pyproject.toml --rootdir . $(RUN_$*) 2>&1)"; code=$$?; \
	printf '== pytest $(RUN_$*)\n%s\n' "$$told"; exit $$code

pages: $(VENV)/.installed-dev
	@# In one process, since others run beside it; and told at the end, not in between their lines.
	@told="$$($(BIN)/python -m pytest docs README.md examples/*/README.md 2>&1)"; code=$$?; \
	printf '== pytest docs README.md examples/*/README.md\n%s\n' "$$told"; exit $$code

downstreams: $(VENV)/.installed-dev
	@$(BIN)/python .ci/downstream.py --layered --venv $(DOWNSTREAM) $(POLICIES)
	@told="$$($(DOWNSTREAM)/bin/python -m pytest --config-file pyproject.toml --rootdir . plugins/*/README.md 2>&1)"; code=$$?; \
	printf '== pytest plugins/*/README.md\n%s\n' "$$told"; exit $$code

downstream: $(VENV)/.installed-dev ## tests of other distributions (DIST='path-or-url …'; the gallery's) against this checkout
	@$(BIN)/python .ci/downstream.py --venv $(DOWNSTREAM) $(PARTS:%=--with ./%) $(DIST)

sdists: $(VENV)/.installed-dev ## tests of distributions from their sdists alone (DIST='kschedfw-advisor …'; all of plugins/)
	@$(BIN)/python .ci/sdists.py $(DIST)

nightly: $(VENV)/.installed-dev ## all tests, those that take long too, with many new examples of each property; coverage has a floor
	@PYTEST_ADDOPTS="--hypothesis-profile nightly -m ''" $(BIN)/python .ci/downstream.py --layered --venv $(DOWNSTREAM) $(POLICIES)
	@# In the end, since `make verify` shows the last number of tests.
	@$(BIN)/python -m pytest $(TESTS) -m '' --hypothesis-profile nightly --numprocesses auto --dist worksteal --cov --cov-report=term

verify: $(VENV)/.installed-dev ## everything that takes long, in parts that can be resumed (ONLY='fuzz soak', AT_MOST='fuzz=120'); docs/verification.md has the report
	@$(BIN)/python .ci/verify.py $(AT_MOST:%=--at-most %) $(ONLY)

planted: $(VENV)/.installed-dev ## put old defects back (ONLY='696b96fe'), each in a copy of the last commit: their tests must fail
	@$(BIN)/python .ci/planted.py $(ONLY)

waking: $(VENV)/.installed-dev ## refused pods that fit after an event (PODS=50000): hints wake them
	@PYTHONPATH=plugins/kschedfw-devices/tests $(BIN)/python -m tests.scheduler.waking.run $(PODS)

learned: $(VENV)/.installed-dev ## drawn pure plugins (AMOUNT=50000): learned decisions are those of plain hooks (KIND=decisions), refused pods are woken (KIND=waking)
	@# Goes on after the last seed that is kept, as of a run of this commit that was interrupted.
	@PYTHONPATH=plugins/kschedfw-devices/tests $(BIN)/python -m tests.framework.learning.trials \
		$(KIND) $(AMOUNT) build/learned/$$(git rev-parse --short HEAD)-$(KIND).jsonl

churn: $(VENV)/.installed-dev ## decisions while everything changes (DECISIONS=200000, FAST=without-fast): a new scheduler decides the same
	@$(BIN)/python -m tests.scheduler.churn.run $(DECISIONS) $(SEED) $(FAST)

soak: $(VENV)/.installed-dev ## random worlds (SECONDS=600), over HTTP (STEPS=200000), of several schedulers (COMMITS=1000000), asked about (CASES=20000), with groups of pods (GROUPS=600 seconds), or with late events (LATE=600 seconds)
	@# Each of its tests takes longer than a test may in `make test`.
	@$(if $(CASES),KSCHEDFW_CASES=$(CASES) $(BIN)/python -m pytest -q tests/what_if/test_gangs.py -o timeout=0 -o faulthandler_timeout=0,)
	@$(if $(CASES),,PYTHONPATH=plugins/kschedfw-kubernetes/tests:plugins/kschedfw-lab/tests $(BIN)/python -m $(if $(COMMITS),cell.random_world $(COMMITS),$(if $(STEPS),tests.scheduler.invariants.served_soak $(STEPS),tests.scheduler.invariants.soak $(if $(GROUPS),$(GROUPS) '' groups,$(if $(LATE),$(LATE) '' late,$(SECONDS))))))
	@$(if $(COMMITS),PYTHONPATH=plugins/kschedfw-kubernetes/tests $(BIN)/python -m cluster.claims_world $(COMMITS))

fuzz: $(VENV)/.installed-dev ## hostile input, then plugins and executors that fail on threads (SECONDS=600 each)
	@PYTHONPATH=plugins/kschedfw-kubernetes/tests $(BIN)/python -m tests.hostile.fuzz $(SECONDS)
	@$(BIN)/python -m tests.hostile.threads $(SECONDS)

benchmark: $(VENV)/.installed-dev ## what pods cost, against benchmarks/history.jsonl (APPEND=--append adds to it)
	@$(BIN)/python -m tests.benchmarks.history $(APPEND)

figures: $(VENV)/.installed-dev ## measure what docs/performance.md says (ONLY=nodes), and write it with machine, commit and date
	@$(BIN)/python docs/figures.py $(ONLY)

lint: $(VENV)/.installed-dev ## ruff, mypy and import-linter
	@echo '== ruff check'
	@$(BIN)/ruff check
	@echo '== ruff format --check'
	@$(BIN)/ruff format --check
	@echo '== mypy'
	@$(BIN)/mypy $(CORE)
	@$(BIN)/python .ci/typed_projects.py $(PARTS)
	@echo '== lint-imports'
	@$(BIN)/lint-imports
	@$(BIN)/python .ci/public_names.py

fmt: $(VENV)/.installed-dev ## format the code, and fix what ruff can fix
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

changelog: $(VENV)/.installed-dev ## show the next release's changelog
	@$(BIN)/towncrier build --draft

build: $(VENV)/.installed-dev ## make the sdists and wheels of all distributions in dist, the same bytes for the same commit
	@$(BIN)/python .ci/release.py build

release: $(VENV)/.installed-dev ## build twice, install with every extra into empty environments, write SBOM and licences, test each sdist
	@$(BIN)/python -m pip install --quiet --editable '.[release]'
	@$(BIN)/python .ci/release.py check
	@$(BIN)/python .ci/sdists.py --directory dist

clean: ## remove environments, caches and build products
	rm -rf $(VENV) $(DOWNSTREAM) build dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find kschedfw tests examples plugins '(' -name __pycache__ -o -name .hypothesis ')' -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "kschedfw needs Python 3.11 or newer; $(PYTHON) is: $$($(PYTHON) --version 2>&1 | tail -n 1)." \
		"Name another one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
		echo "$(PYTHON) has no venv; on Debian: apt install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The package is installed editable: only a change of pyproject.toml asks for another install. Each distribution is named
# without extras, too: else pip looks in the index for one that only another one's extra asks for.
$(VENV)/.installed-cli: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[cli]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml $(PARTS:%=%/pyproject.toml) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable . --editable '.[dev]' $(PARTS:%=--editable %) $(PARTS:%=--editable %[test])
	@touch $@ $(VENV)/.installed-cli # dev includes cli
