# Each target makes .venv and installs what it needs; `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help demo test lint format type bench docs e2e crash soak
PYTHON ?=
export PYTHON
RUN := .venv/bin/python -m
CODE := agentkit graphs tests

help: ## list the targets
	@grep -E '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /	/' | expand -t 10

.venv/.demo: pyproject.toml constraints.txt .ci/venv
	@.ci/venv demo embedded,cli

.venv/.dev: pyproject.toml constraints.txt .ci/venv
	@.ci/venv dev dev
	@touch .venv/.demo

demo: .venv/.demo ## see it work: parallel tools, a failing tool, memory across threads, a repaired history (half a minute)
	@$(RUN) agentkit demo

test: .venv/.dev ## run the tests (all but e2e, crash and soak)
	@$(RUN) pytest -n 2 -m "not e2e and not crash and not soak"

lint: .venv/.dev ## check style, types, layers and public names
	@$(RUN) ruff check .
	@$(RUN) ruff format --check .
	@$(RUN) mypy
	@.venv/bin/lint-imports
	@$(RUN) pytest -q tests/test_exports.py

format: .venv/.dev ## format the code and mend what can be mended
	@$(RUN) ruff check --fix-only --quiet .
	@$(RUN) ruff format .

type: .venv/.dev ## check types only
	@$(RUN) mypy

bench: .venv/.dev ## measure speed, beside LangGraph's and LangChain's own
	@for each in tests/bench/[a-z]*.py; do echo "== $$each"; .venv/bin/python "$$each" || exit 1; done

docs: .venv/.dev ## run every example of README and docs/
	@$(RUN) pytest -q tests/test_readme.py tests/test_docs.py tests/test_documented_examples.py

e2e: .venv/.dev ## run the tests that need Node.js, a browser or pgbouncer
	@$(RUN) pytest -m e2e

crash: .venv/.dev ## kill processes for minutes and see that nothing is lost or done twice
	@$(RUN) pytest -m crash --timeout 1800

soak: .venv/.dev ## conversations, searches and killed connections together, for minutes
	@$(RUN) pytest -m soak --timeout 3600 -s
