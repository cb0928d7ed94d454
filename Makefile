# Every target sets up .venv by itself. Another interpreter: make PYTHON=python3.12 test
# More options for pip (a package index, say): make PIP_OPTIONS='...' test
PYTHON ?= python3
PIP_OPTIONS ?=

BIN := .venv/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check $(PIP_OPTIONS)
BENCHMARKS = $(sort $(filter-out benchmarks/_%,$(wildcard benchmarks/*.py)))

.PHONY: help demo test bench docs lint clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo    set up .venv and run examples/01_quickstart.py'
	@echo 'make test    run the tests'
	@echo 'make lint    check style, format and types'
	@echo 'make bench   run the benchmarks one after the other'
	@echo 'make docs    build the documentation into docs/_build/html'
	@echo 'make clean   remove what was built, but keep .venv'

demo: .venv/.installed
	$(BIN)/python examples/01_quickstart.py

test: .venv/.installed
	$(BIN)/pytest -q

lint: .venv/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(typing_tree)
	cd build/typing && ../../$(BIN)/mypy --config-file ../../pyproject.toml

bench: .venv/.installed
	@set -e; for script in $(BENCHMARKS); do echo "$$script"; $(BIN)/python "$$script"; done

docs: .venv/.installed-docs
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo 'docs/_build/html/index.html'

clean:
	rm -rf build dist docs/_build docs/generated docs/auto_examples
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find tsrnn kernels datasets tests -name __pycache__ -type d -prune -exec rm -rf {} +

# mypy finds packages by their place, so kernels/ and datasets/ are linked to where they import.
define typing_tree
rm -rf build/typing && mkdir -p build/typing/tsrnn && \
ln -s "$(CURDIR)"/tsrnn/* "$(CURDIR)/kernels" "$(CURDIR)/datasets" build/typing/tsrnn/
endef

.venv/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v <= (3, 13) else \
	"tsrnn needs Python 3.11 to 3.13; $(PYTHON) is %d.%d. Name another: make PYTHON=python3.12" % v)'
	$(PYTHON) -m venv .venv

.venv/.installed: pyproject.toml constraints.txt | .venv/bin/python
	@echo 'installing tsrnn and what it needs into .venv (takes minutes the first time)'
	@$(PIP) -c constraints.txt -e '.[test,lint,polars]'
	@touch $@

.venv/.installed-docs: pyproject.toml constraints.txt | .venv/.installed
	@echo 'installing what the documentation needs into .venv'
	@$(PIP) -c constraints.txt -e '.[docs]'
	@touch $@
