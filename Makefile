# Two commands need nothing but Python >= 3.11 (pip, venv), git and make: `make demo`, `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test test-paper test-long chromium ready kernels environments test-previous test-lowest test-wheel lint types check bench bench-variational bench-scale bench-server bench-aepsych bench-faults docs paper paper-quick clean

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "betafield needs Python 3.11 or newer; name one with make PYTHON=...")'
	@echo "making $(VENV): about ten seconds"
	$(PYTHON) -m venv $(VENV)

# A stamp per set of extras: installed once, and again when pyproject.toml changes. `dev` includes
# `test`; the site and the wheel are part of the long run only.
$(VENV)/.installed-base: pyproject.toml | $(BIN)/python
	@echo "installing betafield into $(VENV): up to a minute, once"
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --editable .
	@touch $@

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	@echo "installing what '$*' needs into $(VENV): one to three minutes, once"
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --editable '.[$*]'
	@touch $@ $(if $(filter dev,$*),$(VENV)/.installed-test)

demo: $(VENV)/.installed-demo  ## learn when flights are late; prints what it found, saves a picture
	@echo "starting the demo: about 15 seconds, and 5 more the first time"
	$(BIN)/python examples/flights.py

# Tests share the cores, a thread each; one more goes on while others wait for browsers and servers.
PARALLEL := --numprocesses auto --dist worksteal
export PYTEST_XDIST_AUTO_NUM_WORKERS ?= $(shell $(PYTHON) -c 'import os; print(1 + os.cpu_count())')
# Every process that tests start would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

test: ready chromium  ## the test suite, but for what takes long
	$(ONE_THREAD) $(BIN)/pytest $(PARALLEL)

test-paper: ready  ## the paper's experiments alone, reduced
	$(ONE_THREAD) $(BIN)/pytest --quiet tests/test_paper.py

test-long: $(VENV)/.installed-dev ready chromium  ## all tests, many times as many generated cases, new ones each time; coverage
	$(BIN)/coverage erase
	$(ONE_THREAD) NUMBA_DISABLE_JIT=1 $(BIN)/pytest --quiet $(PARALLEL) --cov --cov-report= tests/windows tests/posteriors/test_contextual.py -k "not samples and not affine and not too_far_off"
	$(ONE_THREAD) $(BIN)/pytest --quiet -m '' tests/test_paper.py
	$(ONE_THREAD) $(BIN)/pytest $(PARALLEL) -m '' --timeout=3600 --hypothesis-profile=long --cov --cov-append --cov-report=term --cov-fail-under=95 --ignore=tests/test_paper.py
	@$(MAKE) --no-print-directory test-lowest test-wheel

chromium:
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit; done; \
		echo "no Chromium found: the tests of pages in a browser are skipped (apt-get install chromium)"

# Processes that start together would each compile the same; these leave it on disk for all.
$(VENV)/.compiled: $(VENV)/.installed-base tests/kernels.py $(shell find src -name '*.py')
	@echo "compiling kernels for the tests: about a minute"
	PYTHONPATH=src $(ONE_THREAD) $(BIN)/python tests/kernels.py
	@touch $@

# Kernels need the base alone, so they compile while the rest is installed.
$(VENV)/.installed-test $(VENV)/.installed-dev: $(VENV)/.installed-base
ready: $(VENV)/.installed-base
	@$(MAKE) --no-print-directory --jobs 2 $(VENV)/.installed-test kernels

kernels: $(VENV)/.compiled  ## compile what is compiled, once for all tests

# The release before the newest of scikit-learn, laid over the environment, which else is the same.
PREVIOUS := $(VENV)-previous
$(PREVIOUS)/.laid-over: $(VENV)/.installed-dev
	@echo "installing the previous release of scikit-learn into $(PREVIOUS): ten seconds, once"
	rm -rf $(PREVIOUS)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --target $(PREVIOUS) 'scikit-learn==1.8.*'
	PYTHONPATH=$(PREVIOUS) $(BIN)/pip check
	@touch $@

# The lowest releases that pyproject.toml allows, in an environment of their own.
LOWEST := $(VENV)-lowest
$(LOWEST)/.installed: pyproject.toml tests/lowest.py
	@echo "installing the lowest releases that are allowed into $(LOWEST): two minutes"
	rm -rf $(LOWEST)
	$(PYTHON) -m venv $(LOWEST)
	$(PYTHON) tests/lowest.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/pip install --quiet --disable-pip-version-check --constraint $(LOWEST)/constraints.txt --editable '.[cli,files]' hypothesis pandas polars pytest pytest-cov pytest-timeout
	@touch $@

test-lowest: $(LOWEST)/.installed  ## what touches other packages, with their lowest releases
	$(ONE_THREAD) $(LOWEST)/bin/pytest --quiet tests/test_sklearn.py tests/test_estimators.py tests/test_tables.py

test-wheel: $(VENV)/.installed-dev  ## build wheel and sdist, and try the wheel in an empty environment
	tests/wheel.sh $(BIN)/python

environments: $(VENV)/.installed-dev $(PREVIOUS)/.laid-over  ## what the tests need

# Accuracy beside other calibrations is no question of its release.
test-previous: $(PREVIOUS)/.laid-over ready  ## what touches scikit-learn, with its previous release
	$(ONE_THREAD) PYTHONPATH=$(abspath $(PREVIOUS)) $(BIN)/pytest --quiet $(PARALLEL) -k "not isotonic and not cover" tests/test_sklearn.py tests/test_calibration.py tests/test_tables.py tests/test_bad_input.py tests/baselines/test_baselines.py

lint: $(VENV)/.installed-dev  ## ruff (lint, format) and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.installed-dev  ## mypy, strict
	$(BIN)/mypy

check: lint types test  ## all that must pass before a commit

# Peers may want other releases of what we need, so they have an environment of their own.
BENCH := $(VENV)-bench
$(BENCH)/.installed: pyproject.toml
	@echo "installing what benchmarks need into $(BENCH): one to three minutes, once"
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@

# Where field_goals.csv and flights.parquet with all columns are; sets without a file are left out.
DATA ?= examples/data
bench: export OPENBLAS_NUM_THREADS = 1
bench: export OMP_NUM_THREADS = 1
bench: $(BENCH)/.installed  ## speed, memory and accuracy against peers (an hour; peers two hours more, once)
	$(BENCH)/bin/python benchmarks/speed.py
	$(BENCH)/bin/python benchmarks/costs.py
	$(BENCH)/bin/python benchmarks/distorted.py
	$(BENCH)/bin/python benchmarks/rates.py
	$(BENCH)/bin/python benchmarks/accuracy.py
	$(BENCH)/bin/python benchmarks/process.py error --trials 100 300 --seeds 3
	$(BENCH)/bin/python benchmarks/process.py error --trials 1000 --seeds 2
	$(BENCH)/bin/python benchmarks/process.py leaving
	$(BENCH)/bin/python benchmarks/pinned.py
	$(BENCH)/bin/python benchmarks/told.py
	$(BENCH)/bin/python benchmarks/shapes.py
	$(BENCH)/bin/python benchmarks/real.py --data $(DATA)
	$(BENCH)/bin/python benchmarks/classes.py
	$(BENCH)/bin/python benchmarks/flights.py
	$(BENCH)/bin/python benchmarks/intervals.py
	$(BENCH)/bin/python benchmarks/together.py
	$(BENCH)/bin/python benchmarks/files.py
	$(BENCH)/bin/python benchmarks/alternatives.py
	$(BENCH)/bin/python benchmarks/asking.py
	$(BENCH)/bin/python benchmarks/bandits.py
	$(BENCH)/bin/python benchmarks/tracking.py

# Only the processor is used; PIP_EXTRA_INDEX_URL may name where torch is found without the rest.
VARIATIONAL := $(VENV)-variational
$(VARIATIONAL)/.installed: pyproject.toml
	@echo "installing PyTorch and GPyTorch into $(VARIATIONAL): several minutes, once"
	$(PYTHON) -m venv $(VARIATIONAL)
	$(VARIATIONAL)/bin/pip install --quiet --disable-pip-version-check --editable '.[variational]'
	@touch $@

bench-variational: $(VARIATIONAL)/.installed  ## error beside a stochastic variational process, 10⁴ and 10⁵ trials
	$(ONE_THREAD) $(VARIATIONAL)/bin/python benchmarks/variational.py

bench-scale: $(BENCH)/.installed  ## files and clusters: 2·10⁷ trials, and workers killed at random
	$(BENCH)/bin/python benchmarks/scale.py

SCALE ?= 1
bench-server: ready  ## the server: outcomes per second, asks, kills, power cuts; SCALE=0.1 for less
	$(ONE_THREAD) $(BIN)/python benchmarks/server.py --scale $(SCALE)

# Its pins are older than ours; PIP_EXTRA_INDEX_URL may name where torch is found without the rest.
AEPSYCH := $(VENV)-aepsych
$(AEPSYCH)/.installed:
	$(PYTHON) -m venv $(AEPSYCH)
	$(AEPSYCH)/bin/pip install --quiet --disable-pip-version-check 'aepsych==0.8.0'
	@touch $@

bench-aepsych: ready $(AEPSYCH)/.installed  ## an ask of our server beside one of AEPsych's
	$(ONE_THREAD) $(BIN)/python benchmarks/aepsych.py --aepsych $(AEPSYCH)/bin/aepsych_server

bench-faults: ready  ## threads, interrupts, kills, mutated files and hostile calls: counts the harm
	$(BIN)/python benchmarks/faults.py

docs: $(VENV)/.installed-dev  ## the site, into out/site; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

paper: $(VENV)/.installed-test  ## every experiment of the paper, with its figures (an hour; may be stopped and resumed)
	$(BIN)/python -m paper

paper-quick: $(VENV)/.installed-test  ## the same in two minutes, on fewer and smaller runs; fails if a check is missed
	$(BIN)/python -m paper --quick --fresh --cache out/paper-quick

clean:  ## remove the environment and all caches
	rm -rf $(VENV) $(PREVIOUS) $(LOWEST) $(BENCH) $(VARIATIONAL) $(AEPSYCH) out .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find src tests benchmarks examples paper -name __pycache__ -prune -exec rm -rf {} +
