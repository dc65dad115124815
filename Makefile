# Every target sets up its own .venv when it is missing or out of date.
PY := .venv/bin/python
STAMP := .venv/.ready

.PHONY: demo test test-deep test-versions test-pythons test-wheel lint bench docs self-check release-check clean

$(STAMP): pyproject.toml constraints.txt
	test -x $(PY) || python3 -m venv .venv
	$(PY) -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(PY) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	# As pip does for a package that is not editable: where PYTHONDONTWRITEBYTECODE is set, every start would compile us again.
	$(PY) -m compileall -q src
	touch $(STAMP)

demo: $(STAMP)
	$(PY) -m gradsmith check examples/first_gradient.py --exit-zero

lint: $(STAMP)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

test: lint
	$(PY) -m pytest -n 2 -m "not deep"

test-deep: lint
	$(PY) -m pytest -n 2

# The tests that touch torch with another torch, in an environment of its own: make test-versions V=2.8.0 (or V=newest).
# The results go to docs/compatibility.md.
V ?= newest
test-versions: $(STAMP)
	$(PY) tools/test_versions.py $(V)

# Lint and the source model with other Pythons: make test-pythons P="python3.10 python3.14"
P ?= python3.10 python3.11 python3.12 python3.13 python3.14
test-pythons: $(STAMP)
	$(PY) tools/test_pythons.py $(P)

# The wheel in empty environments, without and with torch.
test-wheel: $(STAMP)
	$(PY) tools/test_wheel.py

# Hours: every benchmark once, and docs/evidence.md from what they print. One alone: python benchmarks/evidence.py run NAME
bench: $(STAMP)
	-$(PY) benchmarks/evidence.py run

docs: $(STAMP)
	$(PY) docs/generate.py
	$(PY) benchmarks/evidence.py
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet
	@echo "open site/index.html"

# Half an hour: gradsmith on its own Functions, the gallery, the ops, the templates, the pages of rules and the documents.
self-check: $(STAMP)
	$(PY) tools/self_check.py

# What has to hold before a version goes out; the quick questions first.
release-check: $(STAMP)
	$(PY) tools/release_check.py
	$(MAKE) docs self-check test-deep

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache site
