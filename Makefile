# Every task, one line each: make
SHELL := /bin/bash
.DEFAULT_GOAL := help
PY := .venv/bin/python
JOBS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$(( n > 8 ? 8 : n )))
# Tests start hundreds of processes: without bytecode beside it, torch alone takes 4.9 s of a core to import, not 2.2.
PYTEST := PYTHONDONTWRITEBYTECODE= $(PY) -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder -q
DEMO := .venv/bin/kbtui run sample_kernels/softmax --budget 75s

.PHONY: help setup dev demo test test-full test-gpu check format lint types contracts screenshots bench-endurance bench-kills bench-screening bench-store bench-viewer study record-pools bench-six results walk wheel clean

help: ## List the tasks
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Make .venv with what kbtui needs
	@.ci/setup.sh run

dev:
	@.ci/setup.sh dev

demo: setup ## Search for a faster softmax: in the viewer, or headless with HEADLESS=1 or no terminal
	@if [ -t 0 ] && [ -t 1 ] && [ "$${HEADLESS:-0}" = 0 ]; then $(DEMO); else $(DEMO) --headless; fi; \
	code=$$?; [ $$code -le 1 ] || exit $$code

test: dev ## Run all tests that need no GPU; names those skipped for a missing program
	@$(PYTEST) -m "not gpu and not slow"

test-full: dev ## The same with the long campaigns
	@$(PYTEST) -m "not gpu"

test-gpu: dev ## Run the tests that need an NVIDIA GPU
	@$(PY) -m pytest -q -m "gpu"

check: lint types contracts test ## What CI runs: format, lint, types, import contracts, tests

format: dev ## Format the code and sort its imports
	@$(PY) -m ruff format . && $(PY) -m ruff check --fix .

lint: dev ## Check format and lint
	@$(PY) -m ruff format --check . && $(PY) -m ruff check .

types: dev ## Check types, strictly
	@$(PY) -m mypy

contracts: dev ## Check that imports point one way
	@.venv/bin/lint-imports

screenshots: dev ## Draw the pictures of README and docs: the viewer on a search that ran on a GPU
	@$(PY) docs/picture.py && $(PY) docs/viewer.py

bench-kills: dev ## Kill the engine 200 times in replayed searches and check that nothing is lost
	@$(PY) benchmarks/kill_campaign.py --kills 200 --longest 0.8

bench-viewer: dev ## Time the viewer on 100,000 candidates, and weigh what it sends (a few minutes)
	@$(PY) benchmarks/viewer_scale.py
	@$(PY) benchmarks/viewer_traffic.py

study: dev ## Study the scheduler on the recorded pools and make the pages of it (minutes, no GPU)
	@$(PY) benchmarks/scheduler_study.py --ablations && $(PY) docs/results.py

record-pools: dev ## Record the study's pools on a GPU, for SECONDS (540): call again to go on
	@$(PY) benchmarks/record_pools.py --seconds $(or $(SECONDS),540)

walk: dev ## Write docs/walk.txt: a search over ssh, as a terminal showed it (needs sshd and tmux)
	@$(PY) docs/walk.py

bench-store: dev ## Time the store with 100,000 candidates in it (a few minutes, 1 GB of disk)
	@$(PY) benchmarks/store_scale.py

bench-endurance: dev ## Evaluate 200 candidates without a GPU, one in five hostile; nothing may be left
	@$(PY) benchmarks/endurance.py --device model:a100 --candidates 200

bench-six: dev ## Search, measure and keep the six benchmarks on a GPU, then make docs/results.md
	@$(PY) benchmarks/bench_six.py $(ARGS); code=$$?; $(PY) docs/results.py && exit $$code

results: dev ## Make docs/results.md, its plots and the table of README.md from what bench-six kept
	@$(PY) docs/results.py

bench-screening: dev ## Time what it costs to screen a candidate on the GPU, beside a process for each
	@$(PY) benchmarks/screening.py --candidates 200

wheel: dev ## Build the wheel into dist/
	@$(PY) -m build --wheel --no-isolation --outdir dist

clean: ## Remove what was built here; runs in .kbtui stay
	@rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
