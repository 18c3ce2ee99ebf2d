# make demo | test | test-all | lint | docs | bench: each installs all it needs into .venv first.
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

.PHONY: demo test test-all lint format docs bench clean

demo: $(VENV)/.demo
	$(BIN)/internutopia demo

test: $(VENV)/.dev
	tools/install_system_packages.sh
	$(PYTEST) -n auto -m 'not slow'

test-all: test # then, since an installation beside the tests would change what they import
	$(MAKE) $(VENV)/.physx
	$(PYTEST) -n $(WORKERS) -m slow

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python tools/make_robots.py --check
	$(BIN)/python tools/make_terrain.py --check
	$(BIN)/python tools/make_reference.py --check
	$(BIN)/python tools/make_porting.py --check

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks --out out/bench

clean:
	rm -rf $(VENV) out build *.egg-info

# One stamp per extra: a newer pyproject.toml or constraints.txt installs again. What is used is compiled when it is
# imported first: to compile all of it takes a third of the time of an installation
$(VENV)/.demo: EXTRA = cli,policies
$(VENV)/.dev: EXTRA = dev
$(VENV)/.bench: EXTRA = bench
$(VENV)/.demo $(VENV)/.dev $(VENV)/.bench: pyproject.toml constraints.txt | $(VENV)
	$(BIN)/pip install --quiet --no-compile --constraint constraints.txt --editable '.[$(EXTRA)]'
	touch $@

# PhysX where there is a wheel of it: else its tests are skipped, and fail in CI. It asks for a packaging before 24, and
# works with that of the others
$(VENV)/.physx: constraints.txt | $(VENV)/.dev
	-$(BIN)/pip install --quiet --no-compile --no-deps --constraint constraints.txt $(PHYSX)
	touch $@

$(VENV):
	$(PYTHON) -m venv $(VENV)
