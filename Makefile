# Every target sets up .venv by itself. Another interpreter: make PYTHON=python3.12 test
# More options for pip (a package index, say): make PIP_OPTIONS='...' test
# Tests one after the other, in one process: make WORKERS=0 test
PYTHON ?= python3
PIP_OPTIONS ?=
WORKERS ?= 2

BIN := .venv/bin
PIP := python -m pip install -qq --disable-pip-version-check $(PIP_OPTIONS)
# A worker has one thread, so that workers do not take the cores from each other.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -q -n $(WORKERS) --dist worksteal
LOWEST := .venv-lowest/bin
OTHER_PYTHONS ?= python3.11 python3.12 python3.13 python3.14
SOURCES := tsrnn kernels datasets tests examples benchmarks
BENCHMARKS = $(sort $(filter-out benchmarks/_%,$(wildcard benchmarks/*.py)))

.PHONY: help demo test test-all examples test-lowest bench bench-smoke bench-pages docs docs-check lint bytecode dist smoke clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo    set up .venv and run examples/01_quickstart.py'
	@echo 'make test    run the tests but for slow ones and the examples: 12 minutes on two cores'
	@echo 'make test-all  run all tests but for the examples: 40 minutes on two cores'
	@echo 'make examples  run the examples and check what they print'
	@echo 'make lint    check style, format and types'
	@echo 'make bench   run the benchmarks one after the other; of long ones, print the kept results'
	@echo 'make bench-smoke  run each benchmark at its smallest size, to see that it works'
	@echo 'make bench-pages  write the tables of docs/benchmarks from the kept results'
	@echo 'make docs    build the documentation into docs/_build/html, with the output of the examples'
	@echo 'make docs-check  check pages and references without building them'
	@echo 'make clean   remove what was built, but keep .venv'
	@echo
	@echo 'make test-lowest  run a part of the tests on the lowest versions allowed (.venv-lowest)'
	@echo 'make bytecode     compile all files with each Python that is there, warnings as errors'
	@echo 'make dist         build the wheel and the source distribution into dist/'
	@echo 'make smoke        install the wheel of dist/ into an environment of its own and try it'

demo: .venv/.installed
	$(BIN)/python examples/01_quickstart.py

test: .venv/.installed
	$(PYTEST) -m 'not example and not slow'

# Further cases of the same checks, further searches for optima, killed processes, long pages.
test-all: .venv/.installed
	$(PYTEST) -m 'not example'

examples: .venv/.installed
	$(PYTEST) -m example tests/test_examples.py

test-lowest: .venv-lowest/.installed
	OMP_NUM_THREADS=1 $(LOWEST)/pytest -q -n $(WORKERS) --dist worksteal -p no:cacheprovider -m 'not slow' $(ON_LOWEST)

lint: .venv/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell README.md CONTRIBUTING.md CHANGELOG.md docs examples tsrnn kernels datasets
	@$(typing_tree)
	cd build/typing && ../../$(BIN)/mypy --config-file ../../pyproject.toml --cache-dir ../../.mypy_cache

bench: .venv/.installed
	@set -e; for script in $(BENCHMARKS); do \
		only=; if grep -q -- --print-only "$$script"; then only=--print-only; fi; \
		echo "$$script $$only"; $(BIN)/python "$$script" $$only; \
	done

# Two at a time, a thread each; the output of those that fail is printed.
bench-smoke: .venv/.installed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/_smoke.py --workers $(WORKERS) $(BENCHMARKS)

bench-pages: .venv/.installed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/_pages.py

# Examples run two at a time, a thread each.
docs: .venv/.installed-docs
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo 'docs/_build/html/index.html'

# Reads all pages and resolves all references, but runs no example and writes no page.
docs-check: .venv/.installed-docs
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build -q -W --keep-going -b dummy -D plot_gallery=0 docs docs/_build/check

bytecode:
	@for python in $(OTHER_PYTHONS); do \
		if ! $$python -c '' 2>/dev/null; then echo "$$python is not here: skipped"; continue; fi; \
		PYTHONPYCACHEPREFIX=build/bytecode $$python -W error -m compileall -qf $(SOURCES) || exit 1; \
		echo "$$python compiles all files"; \
	done

# The wheel is built from the source distribution, in an environment of its own.
dist: .venv/.installed-release
	rm -rf dist
	$(BIN)/python -m build --outdir dist . >/dev/null
	@ls dist

smoke: .venv/.installed
	TSRNN_DIST=dist $(BIN)/pytest -q tests/release

clean:
	rm -rf build dist docs/_build docs/generated docs/auto_examples
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find tsrnn kernels datasets tests -name __pycache__ -type d -prune -exec rm -rf {} +

# mypy finds packages by their place, so kernels/ and datasets/ are linked to where they import.
define typing_tree
rm -rf build/typing && mkdir -p build/typing/tsrnn && \
ln -s "$(CURDIR)"/tsrnn/* "$(CURDIR)/kernels" "$(CURDIR)/datasets" build/typing/tsrnn/ && \
ln -s "$(CURDIR)/benchmarks" build/typing/
endef

.venv/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v else \
	"tsrnn needs Python 3.11 or later; $(PYTHON) is %d.%d. Name another: make PYTHON=python3.12" % v)'
	$(PYTHON) -m venv .venv

.venv/.installed: pyproject.toml constraints.txt | .venv/bin/python
	@echo 'installing tsrnn and what it needs into .venv (takes minutes the first time)'
	@$(BIN)/$(PIP) -c constraints.txt -e '.[test,lint,polars]'
	@touch $@

# Frames, the contract, linear models against their oracles, baselines, adapters.
# Whether a fit is frozen depends on no version.
ON_LOWEST := tests/data tests/contract --ignore tests/contract/test_frozen.py tests/adapters tests/test_import.py tests/test_datasets.py \
	tests/linear/test_arma_class.py tests/linear/test_garch.py tests/linear/test_varma_class.py \
	tests/baselines/test_oracles.py tests/forecasters/test_contract.py tests/inference

.venv-lowest/.installed: pyproject.toml constraints-lowest.txt
	@echo 'installing the lowest versions that are allowed into .venv-lowest'
	@$(PYTHON) -m venv .venv-lowest
	@$(LOWEST)/$(PIP) -c constraints-lowest.txt -e '.[test,sktime]'
	@touch $@

.venv/.installed-release: pyproject.toml constraints.txt | .venv/.installed
	@$(BIN)/$(PIP) -c constraints.txt -e '.[release]'
	@touch $@

.venv/.installed-docs: pyproject.toml constraints.txt | .venv/.installed
	@echo 'installing what the documentation needs into .venv'
	@$(BIN)/$(PIP) -c constraints.txt -e '.[docs]'
	@touch $@
