# Everything a developer does with this repository. `make` alone lists it.
SHELL := /bin/sh
.DEFAULT_GOAL := help
# Tools of the checkout come first: helm, helm3 and kubectl that `make setup` brought, then the virtual environment.
export PATH := $(CURDIR)/.venv/bin:$(CURDIR)/.cache/tools/bin:$(PATH)
PY := .venv/bin/python
# The chart engine is used where it was built; tests name it where they want it.
demo run bench: export PATH := $(CURDIR)/.venv/bin:$(CURDIR)/.cache/tools/bin:$(CURDIR)/.cache/tools/engine:$(PATH)

.PHONY: help setup demo run test test-full lint bench engine engine-test docs reference build clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## virtual environment, helm, kubectl; Debian packages where root allows
	@deploy/setup.sh

demo: setup ## the main job, from push to Ready to uninstall, on the embedded control plane
	@$(PY) examples/demo.py

run: setup ## the same set-up as the demo, left running until Ctrl-C
	@$(PY) examples/demo.py --stay

test: setup ## the tests, sampled (about 5 minutes on two idle cores)
	@.ci/test

test-full: export WHARFINGER_TEST_FULL := 1
test-full: setup engine ## all tests with the full figures (one to two hours)
	@.ci/test

lint: setup ## ruff, mypy, import contract
	@.ci/lint

engine: setup ## the resident chart engine (Go), which renders charts without starting helm
	@deploy/engine.sh

engine-test: setup ## the chart engine's own tests, and the engine
	@deploy/engine.sh --test

bench: setup engine ## benchmarks, ratios against yardsticks (within 4 minutes; see bench/README.md)
	@$(PY) -m bench

docs: setup ## the site of docs/ in build/site, with all links checked
	@$(PY) -m mkdocs build --strict --quiet && echo build/site

reference: setup ## the pages of docs/reference, which are made from the code
	@$(PY) -m tools.docs.generate_reference

build: setup ## wheel and sdist in dist/
	@rm -rf build dist && PIP_CONSTRAINT=constraints.txt $(PY) -m build --outdir dist . >/dev/null && ls dist

clean: ## what building and testing left
	@rm -rf build dist *.egg-info .coverage .coverage.* coverage.json .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -not -path './.venv/*' -type d -exec rm -rf {} +

distclean: clean ## also the virtual environment and the tools
	@rm -rf .venv .cache
