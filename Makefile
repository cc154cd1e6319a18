# Two commands on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
# The benchmark graphs, when they lie beside the checkout; tests that need them are skipped elsewhere.
SPGCL_DATA ?= $(abspath ../shared/datasets)

.PHONY: demo test setup lint

setup: $(STAMP)

# Re-made only when what it installs from changes. A half-finished install leaves no stamp.
$(STAMP): pyproject.toml constraints.txt
	@rm -f $@
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable '.[dev]' --constraint constraints.txt
	@touch $@

demo: $(STAMP)
	@PATH="$(abspath $(BIN)):$$PATH" bash demo.sh

# One thread a worker: two workers with two threads each wait for each other most of the time.
test: $(STAMP)
	OMP_NUM_THREADS=1 $(if $(wildcard $(SPGCL_DATA)),SPGCL_DATA=$(SPGCL_DATA)) $(BIN)/pytest --numprocesses 2

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
