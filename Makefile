# Every target sets up its own .venv when it is missing or out of date.
PY := .venv/bin/python
STAMP := .venv/.ready

.PHONY: demo test test-deep lint bench docs clean

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

# A benchmark that misses its goal exits with 1; the others are run all the same.
bench: $(STAMP)
	-$(PY) benchmarks/verify.py
	-$(PY) benchmarks/first_verdict.py
	-$(PY) benchmarks/levels.py
	-$(PY) benchmarks/lint_speed.py
	-$(PY) benchmarks/survey.py
	-$(PY) benchmarks/guess.py
	-$(PY) benchmarks/profile_cases.py
	-$(PY) benchmarks/recurrent.py
	-$(PY) benchmarks/engine_faults.py

docs: $(STAMP)
	$(PY) docs/generate.py

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache
