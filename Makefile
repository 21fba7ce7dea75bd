# Two commands to know: `make demo` shows textmill at work, `make test` runs everything CI runs.
# On a machine with Python 3.11 or newer both need nothing else: the first call makes .venv.

# The Python to make .venv with. Where none is named: the first of these that will do.
PYTHON ?= python3 python3.13 python3.12 python3.11
VENV := .venv
CONSTRAINTS := constraints.txt
# How many processes check and test at a time. Each of pytest's takes about 1.5 GB of memory.
JOBS ?= 2
BIN := $(VENV)/bin
DOCS := $(BIN)/sphinx-build --jobs $(JOBS) --fail-on-warning --nitpicky --keep-going --quiet -b html docs docs/_build/html

# Tests start Python a hundred times: what it has compiled it shall find again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-gpu test-lowest check lint types floors pages format docs models pictures bench results clean

help:
	@echo "make demo      installs textmill, trains a small translator, evaluates it, translates five sentences"
	@echo "make test      everything CI runs: format, lint, types, floors, docs, tests"
	@echo "make test-all  the same, and the long proofs"
	@echo "make test-gpu  the tests on a GPU; says so where there is none"
	@echo "make test-lowest  the core's tests with the oldest versions that pyproject.toml allows"
	@echo "make check     the part of it that runs no test"
	@echo "make format    formats the code and repairs what can be repaired"
	@echo "make docs      builds the documentation into docs/_build/html"
	@echo "make pictures  takes the pictures of the documentation anew, with Chromium (PICTURES=tutorial: of one page)"
	@echo "make models    makes the models that ship with textmill, from published data (MODELS=reference-parser)"
	@echo "make bench     measures textmill beside its peers (BENCH=train: one table; BENCH_ARGS=--quick)"
	@echo "make results   trains on real data beside linear baselines (RESULTS=tagging; RESULTS_ARGS=\"--data data\")"
	@echo "make clean     removes what was built, and .venv"

demo: $(VENV)/core.stamp
	$(BIN)/textmill demo

# The tests come last, so that their closing line is the last one printed. A process that has no test
# left takes half of those the other has left: a file's tests mostly stay together, with what they share.
PYTEST := $(BIN)/python -m pytest --numprocesses $(JOBS) --dist worksteal

test: check
	$(PYTEST)

test-all: check $(VENV)/engines.stamp
	$(PYTEST) -m "not network" --hypothesis-profile thorough

# What trains and answers takes the GPU where there is one, so the same tests prove it there.
test-gpu: $(VENV)/test.stamp
	@if $(BIN)/python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then \
	  $(PYTEST); \
	else \
	  echo "test-gpu: torch finds no CUDA device here, so nothing was tested."; \
	fi

# The oldest versions that pyproject.toml allows have an environment of their own, and the tests that ask
# no other package for the right answer.
LOWEST_VENV := .venv-lowest
LOWEST_TOOLS := ctranslate2 hypothesis nltk pytest pytest-timeout pytest-xdist scikit-learn scipy
LOWEST_TESTS := $(addprefix tests/,checkpoint config data inference metrics models runtime tasks text training)
LOWEST_LEFT_OUT = $(shell grep -lrE '^ *(from|import) (datasets|tensorboard|tests.pretrained_checkpoints|transformers)' tests) tests/metrics/reporters tests/training/test_run_folder_page.py

test-lowest:
	@$(MAKE) --no-print-directory VENV=$(LOWEST_VENV) CONSTRAINTS=constraints-lowest.txt $(LOWEST_VENV)/lowest.stamp
	$(LOWEST_VENV)/bin/python -m pytest --numprocesses $(JOBS) --dist worksteal $(addprefix --ignore=,$(LOWEST_LEFT_OUT)) $(LOWEST_TESTS)

check: $(VENV)/test.stamp
	@$(MAKE) --no-print-directory --jobs $(JOBS) types pages lint floors

lint types floors pages: $(VENV)/test.stamp

lint:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types:
	$(BIN)/mypy

floors:
	$(BIN)/lint-imports

pages:
	$(DOCS)

format: $(VENV)/test.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/test.stamp
	$(DOCS)
	@echo "docs/_build/html/index.html"

# The tests take the same pictures, and keep none.
PICTURES :=

pictures: $(VENV)/test.stamp
	$(BIN)/python -m tests.docs.pictures $(PICTURES)

# What ships is in git: this makes it anew, byte for byte with the same versions (docs/pipelines.md).
MODELS :=
MODELS_ARGS :=

models: $(VENV)/test.stamp
	$(BIN)/python -m shipped $(MODELS) $(MODELS_ARGS)

# Peers have an environment of their own; BENCH_PYTHON=... takes one that is there, and installs nothing.
BENCH :=
BENCH_ARGS :=
BENCH_VENV := .venv-bench
BENCH_PYTHON := $(BENCH_VENV)/bin/python

bench:
ifeq ($(BENCH_PYTHON),$(BENCH_VENV)/bin/python)
	@$(MAKE) --no-print-directory VENV=$(BENCH_VENV) $(BENCH_VENV)/bench.stamp
endif
	PYTHONPATH="$(CURDIR)/src" $(BENCH_PYTHON) benchmarks/run.py $(BENCH) $(BENCH_ARGS)

# What is there already is not measured again, and a training that was interrupted goes on.
RESULTS :=
RESULTS_ARGS :=

results: $(VENV)/results.stamp
	$(BIN)/python -m benchmarks.results $(RESULTS) $(RESULTS_ARGS)

clean:
	rm -rf $(VENV) $(BENCH_VENV) $(LOWEST_VENV) docs/_build build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

# What is installed first is pip itself: the one that Python 3.11 came with searches for minutes where the
# pinned one decides. Everything is a wheel: what has to be built here may fail on the next machine. The
# exception is Python alone, and Hydra's: of the version that it wants there is no wheel.
PINS := pyproject.toml $(CONSTRAINTS)
BUILT := antlr4-python3-runtime
PIP_INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --only-binary :all: --no-binary $(BUILT) -c $(CONSTRAINTS)
define install
	$(PIP_INSTALL) --quiet --upgrade pip
	$(PIP_INSTALL) --build-constraint $(CONSTRAINTS) $(1)
endef

# The stamps say what is installed: while neither file below them changes, a second call installs nothing.
$(VENV)/core.stamp: $(PINS) | $(VENV)/made.stamp
	$(call install,-e '.[train]')
	@touch $@

$(VENV)/test.stamp: $(PINS) | $(VENV)/made.stamp
	$(call install,-e '.[test]')
	@touch $@ $(VENV)/core.stamp

$(VENV)/engines.stamp: $(PINS) $(VENV)/test.stamp
	$(call install,-e '.[ray]')
	@touch $@ $(VENV)/test.stamp

$(VENV)/results.stamp: $(PINS) | $(VENV)/made.stamp
	$(call install,-e '.[results]')
	@touch $@ $(VENV)/core.stamp

$(VENV)/bench.stamp: $(PINS) | $(VENV)/made.stamp
	$(call install,-e '.[bench]')
	@touch $@

$(VENV)/lowest.stamp: $(PINS) | $(VENV)/made.stamp
	$(call install,-e '.[train]' $(LOWEST_TOOLS))
	@touch $@

# The first Python that really runs, is new enough and can make a virtual environment. Being on the PATH
# is no proof: version managers leave shims there for versions that are not active.
$(VENV)/made.stamp:
	@for python in $(PYTHON); do \
	  if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "$$python -m venv $(VENV)"; "$$python" -m venv $(VENV) && touch $@; exit $$?; \
	  fi; \
	done; \
	echo "textmill needs Python 3.11 or newer with its venv module (Debian, Ubuntu: apt-get install python3-venv);" >&2; \
	echo "there is none among '$(PYTHON)'. Name one: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 2
