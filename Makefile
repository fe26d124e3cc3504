# Every target sets itself up: a virtual environment in .venv and the package in it.
PYTHON ?= python3
BIN := .venv/bin
# Where Python may keep no bytecode, as in many containers, every process reads JAX anew: for seconds.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help demo test quick lint types unit docs docs-test wheel zoo clean

help:
	@echo "make demo   plays scripted players, trains PPO and HOP+ to the end, compares them, evaluates, writes demo/hop-plus.gif and demo/report.html"
	@echo "make test   lint, types and tests (make lint, make types, make unit for one of them)"
	@echo "make quick  lint and a minute's worth of tests, some of every part, to run while you work"
	@echo "make docs   builds the documentation as a site in site/, in English and Chinese; it needs no network to read"
	@echo "make docs-test   runs every command of README.md and docs/, made small, and the notebooks"
	@echo "make wheel  builds the wheel and tries it in a fresh environment (HOPPLUS_WHEEL=offline: with this one's dependencies)"
	@echo "make zoo    trains the players of zoo:NAME that are missing in src/hopplus/zoo (a GPU: minutes; two cores: hours)"
	@echo "make clean  removes the virtual environment and caches"
	@echo "PYTHON=python3.12 chooses the interpreter; 3.11 or newer is needed"

# The package alone, which is all that the demo needs; then what tests need beside. What is never
# imported need not be compiled.
.venv/package: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "hopplus needs Python 3.11 or newer; try make PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable .
	@touch $@

.venv/installed: .venv/package
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[jaxmarl]' || \
	  echo "jaxmarl could not be installed: tests of its environments are skipped"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]' || \
	  echo "mkdocs could not be installed: tests of the site are skipped"
	@touch $@

demo: .venv/package
	rm -rf demo
	$(BIN)/hopplus evaluate --players stag,stag,hare,random --episodes 10000
	$(BIN)/hopplus ablate ladder --rungs ppo imagination --steps 2.5e5 --seeds 1 --runs demo --name ladder
	$(BIN)/hopplus evaluate demo/ladder/imagination --episodes 10000
	$(BIN)/hopplus replay demo/ladder/imagination --out demo/hop-plus.gif
	$(BIN)/hopplus report demo/ladder/imagination --out demo/report.html
	@echo "PPO and HOP+ side by side: demo/ladder/ladder.html"

test: lint types unit

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Reading jax is most of what mypy does where it has no cache: two processes share it.
types: .venv/installed
	MYPY_NUM_WORKERS=2 $(BIN)/mypy

unit: .venv/installed
	@{ command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null || \
	  echo "no chromium here: tests of pages in a browser are skipped (Debian: apt install chromium)"
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

quick: lint
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile @tests/quick.txt

docs: .venv/installed
	@$(BIN)/python -c 'import material, latex2mathml, jieba' 2>/dev/null || \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	$(BIN)/python docs/site/build.py site
	@echo "open site/index.html"

docs-test: .venv/installed
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal tests/docs_check.py

wheel: .venv/installed
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	$(BIN)/python -m pytest tests/wheel_check.py

zoo: .venv/installed
	$(BIN)/python -m benchmarks.zoo

clean:
	rm -rf .venv demo dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
