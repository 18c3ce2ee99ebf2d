# `make help` lists the targets. Each installs all it needs into .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export MUJOCO_GL ?= egl
# Tests start hundreds of processes: each would compile all that it imports
unexport PYTHONDONTWRITEBYTECODE

PYTEST = $(BIN)/pytest --dist loadgroup
# Slow tests wait for processes much of the time: one worker more than there are cores
WORKERS = $(shell $(PYTHON) -c 'import os; print(os.cpu_count() + 1)')
PHYSX = ovphysx ovstage physx-usd-schemas newton-usd-schemas

.PHONY: demo help test test-slow test-all lint format docs bench bench-check release clean

demo: $(VENV)/.$(if $(VIEW),view,demo) ## run 64 episodes in 16 envs, and draw them: out/demo; VIEW=1: live in a browser
	-$(BIN)/internutopia show configs/demo.yaml --out out/demo/scenes.png
	$(BIN)/internutopia demo $(if $(VIEW),--viewer)

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.* ## /make \1\t/p' $(MAKEFILE_LIST) | expand -t 16

test: $(VENV)/.dev ## run the quick tests, on all cores: some of every behaviour, in minutes
	tools/install_system_packages.sh
	$(PYTEST) -n auto -m 'not slow and not nightly'

# PhysX is installed after `test`, whose imports an installation beside it would change
test-slow: test ## run the quick tests, then the slow ones: those of CI
	$(MAKE) $(VENV)/.physx
	$(PYTEST) -n $(WORKERS) -m 'slow and not nightly'

test-all: test-slow ## run all tests: also those that measure, or do something many times
	$(PYTEST) -n $(WORKERS) -m nightly

# ruff's cache forgets which files moved, and with them which modules are first-party
lint: $(VENV)/.dev ## check rules, format, types, imports, and that generated files are up to date
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python tools/make_robots.py --check
	$(BIN)/python tools/make_terrain.py --check
	$(BIN)/python tools/make_reference.py --check
	$(BIN)/python tools/make_porting.py --check

format: $(VENV)/.dev ## let ruff put right what it can
	$(BIN)/ruff check --no-cache --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.dev ## write the documentation as a website: out/site; broken links are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(VENV)/.bench ## measure the speed beside references: out/bench
	$(BIN)/python -m benchmarks --out out/bench

CHECKED = list,array,walking
bench-check: $(VENV)/.bench ## compare the speed with what benchmarks/history.jsonl keeps for this kind of machine
	$(BIN)/python -m benchmarks --rows $(CHECKED) --out out/bench
	$(BIN)/python benchmarks/history.py out/bench/bench.json

release: $(VENV)/.dev ## build wheel and sdist into dist/, and check them on Python 3.11, 3.12 and 3.13
	$(BIN)/python tools/release.py

clean: ## remove what the other targets wrote
	rm -rf $(VENV) out build dist *.egg-info

# One stamp per extra: a newer pyproject.toml or constraints.txt installs again. What is used is compiled when it is
# imported first: to compile all of it takes a third of the time of an installation
$(VENV)/.demo: EXTRA = cli,policies
$(VENV)/.view: EXTRA = cli,policies,viewer
$(VENV)/.dev: EXTRA = dev
$(VENV)/.bench: EXTRA = bench
$(VENV)/.demo $(VENV)/.view $(VENV)/.dev $(VENV)/.bench: pyproject.toml constraints.txt | $(VENV)
	$(BIN)/pip install --quiet --no-compile --constraint constraints.txt --editable '.[$(EXTRA)]'
	touch $@

# PhysX where there is a wheel of it: else its tests are skipped, and fail in CI. It asks for a packaging before 24, and
# works with that of the others
$(VENV)/.physx: constraints.txt | $(VENV)/.dev
	-$(BIN)/pip install --quiet --no-compile --no-deps --constraint constraints.txt $(PHYSX)
	touch $@

$(VENV):
	$(PYTHON) -m venv $(VENV)
