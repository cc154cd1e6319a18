# On a fresh machine: `make demo`, `make test`.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
# The benchmark graphs; without them, tests that need them are skipped.
SPGCL_DATA ?= $(abspath ../shared/datasets)

.PHONY: demo test setup lint docs fuzz

setup: $(STAMP)

# Installs again only when one of these files changes. A half-finished install leaves no stamp.
$(STAMP): pyproject.toml constraints.txt
	@rm -f $@
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable '.[dev]' --constraint constraints.txt
	@touch $@

demo: $(STAMP)
	@PATH="$(abspath $(BIN)):$$PATH" bash demo.sh
	@echo "Next: $(BIN)/spgcl --help, or 'source $(BIN)/activate' and then: spgcl --help"

# One thread per worker: two workers with two threads each wait for each other most of the time.
test: $(STAMP)
	OMP_NUM_THREADS=1 $(if $(wildcard $(SPGCL_DATA)),SPGCL_DATA=$(SPGCL_DATA)) $(BIN)/pytest --numprocesses 2

# The documents as a site, in `site/`; a page that is missing is an error.
docs: $(STAMP)
	$(BIN)/mkdocs build --strict --quiet

# Crash points, interleavings and ten thousand cases of odd input; takes about half an hour on a quiet core.
fuzz: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/hardening.py --seed $$(date +%s)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
