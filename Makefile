# `make test` and `make demo` need Python 3.11 or newer and nothing else.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# modules are compiled, and kept so, when they are first imported; to compile all of them takes a minute
export PYTHONDONTWRITEBYTECODE :=
QUICKLY := --quiet --disable-pip-version-check --no-compile

.PHONY: demo test lint format build docs bench bench-any-graph bench-faults bench-scale clean

demo: .venv/installed
	$(BIN)/h2hgcn train --out runs/demo --force

test: .venv/installed
	$(BIN)/pytest

lint: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

build: .venv/installed
	$(BIN)/python -m build

docs: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: .venv/installed
	mkdir -p docs/benchmarks
	$(BIN)/python benchmarks/numerics.py --markdown > docs/benchmarks/numerics.md
	$(BIN)/python benchmarks/sparse_products.py --markdown > docs/benchmarks/sparse_products.md
	$(BIN)/python benchmarks/layer_speed.py --markdown > docs/benchmarks/layer_speed.md
	$(BIN)/python benchmarks/robustness.py --markdown > docs/benchmarks/robustness.md
	$(BIN)/python benchmarks/presets.py --markdown > docs/benchmarks/presets.md
	$(BIN)/python benchmarks/data.py --threads 2 --markdown > docs/benchmarks/data.md
	$(BIN)/python benchmarks/training.py --markdown > docs/benchmarks/training.md
	$(BIN)/python benchmarks/explorer.py --markdown > docs/benchmarks/explorer.md
	$(BIN)/python benchmarks/faults.py --markdown > docs/reliability.md  # prints records, runs nothing
	$(BIN)/python benchmarks/any_graph.py --markdown > docs/benchmarks/any_graph.md  # prints records, runs nothing

# every method on every graph, five seeds: a few hours; stop it and run it again to resume
bench-any-graph: .venv/installed
	$(BIN)/pip install $(QUICKLY) -c constraints.txt -e ".[bench]"
	$(BIN)/python benchmarks/any_graph.py > /dev/null
	$(BIN)/python benchmarks/any_graph.py --markdown > docs/benchmarks/any_graph.md

# kills, damages, foreign files, hostile requests: an hour; stop it and run it again to resume
bench-faults: .venv/installed
	$(BIN)/python benchmarks/faults.py > /dev/null
	$(BIN)/python benchmarks/faults.py --markdown > docs/reliability.md

# graphs of up to ten million edges: an hour
bench-scale: .venv/installed
	$(BIN)/python benchmarks/top_links.py --threads 2 --markdown > docs/benchmarks/top_links.md
	$(BIN)/python benchmarks/scale.py --threads 2 --plot docs/images/scale.svg --markdown > docs/benchmarks/scale.md

clean:
	rm -rf .venv dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

# constraints.txt pins every version; with torch pinned, pip takes a CPU build where one is at hand
.venv/installed: pyproject.toml constraints.txt
	@echo "Setting up .venv; this takes a few minutes the first time."
	$(PYTHON) -m venv .venv
	$(BIN)/pip install $(QUICKLY) -c constraints.txt -e ".[dev]"
	touch $@

.venv/docs: .venv/installed
	$(BIN)/pip install $(QUICKLY) -c constraints.txt -e ".[docs]"
	touch $@
