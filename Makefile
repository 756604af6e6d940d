# `make demo` and `make test` do all set-up themselves; a second run does not install again.
PYTHON ?= python3
VENV := .venv
FUZZ_VENV := .venv-fuzz
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# What `make oldest` and `make newest` run: all of it, or a part such as TESTS=tests/plots.
TESTS ?= tests
EVERYTHING := '.[test,tensorboard,wandb]'
UNPINNED := -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-fast test-slow docs fuzz lint types matrix oldest newest audit soak release clean

demo: $(VENV)/.installed
	$(BIN)/lapwing learn Rooms-16 --dim 11 --out demo
	@echo "Open demo/report.html in a browser; the pictures are beside it: eigenvectors.png, curves.png, spectrum.png"

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

# The mathematics alone, for daily work.
SCIENCE := tests/operators tests/objectives tests/diagnostics tests/evaluation \
	tests/test_definitions.py tests/test_representation.py tests/test_solving.py
test-fast: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" $(SCIENCE)

# What takes longer: killed processes, browsers, fuzzing, hostile files, whole reports. .ci/run runs it after `make test`.
test-slow: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

# The documentation site, in site/; a broken link fails. Read it with a browser, or serve it: python3 -m http.server -d site
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open site/index.html in a browser"

# SECONDS for each parser; a virtual environment of its own, because atheris is needed for nothing else.
fuzz: SECONDS ?= 60
fuzz: $(FUZZ_VENV)/.installed
	$(FUZZ_VENV)/bin/python tests/fuzz/fuzz_atheris.py --seconds $(SECONDS)

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-test
	$(BIN)/mypy

# Builds dist/*.whl and dist/*.tar.gz, installs the wheel into an empty environment, and runs the demo and the fast tests from it.
release:
	$(PYTHON) .ci/release.py $(SCIENCE)

# Kills, damaged files and failing disks against the real commands, for so many seconds.
soak: SECONDS ?= 600
soak: $(VENV)/.installed
	$(BIN)/python benchmarks/soak --seconds $(SECONDS)

matrix: oldest newest

# Deprecations between two old packages of other people (Equinox under JAX 0.8.2) and files that old Ray leaves open are not ours to
# mend; `make newest` has none of either.
oldest: .venv-oldest/.installed
	.venv-oldest/bin/python -m pytest -n 2 -W ignore::DeprecationWarning -W ignore::ResourceWarning $(TESTS)

newest: .venv-newest/.installed
	.venv-newest/bin/python -m pytest -n 2 $(TESTS)

# Strict: a package that cannot be looked up, for want of a network or otherwise, is a failure and not a clean bill.
audit: .venv-audit/.installed
	$(PYTHON) .ci/lower_bounds.py > .venv-audit/oldest.txt
	.venv-audit/bin/pip-audit --strict --progress-spinner off --disable-pip --no-deps --requirement constraints.txt
	.venv-audit/bin/pip-audit --strict --progress-spinner off --disable-pip --no-deps --requirement .venv-audit/oldest.txt

.venv-oldest/.installed: pyproject.toml .ci/lower_bounds.py
	rm -rf .venv-oldest
	$(PYTHON) -m venv .venv-oldest
	$(PYTHON) .ci/lower_bounds.py > .venv-oldest/constraints.txt
	.venv-oldest/bin/python $(UNPINNED) --constraint .venv-oldest/constraints.txt --editable $(EVERYTHING)
	touch $@

.venv-newest/.installed: pyproject.toml
	rm -rf .venv-newest
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python $(UNPINNED) --editable $(EVERYTHING)
	touch $@

.venv-audit/.installed:
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python $(UNPINNED) pip-audit
	touch $@

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml constraints.txt
	$(PIP) --editable .
	touch $@

$(VENV)/.installed-test: $(VENV)/.created pyproject.toml constraints.txt
	$(PIP) --editable '.[test]'
	touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: $(VENV)/.created pyproject.toml constraints.txt
	$(PIP) --editable '.[docs]'
	touch $@ $(VENV)/.installed

$(FUZZ_VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(FUZZ_VENV)
	$(FUZZ_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		--editable '.[fuzz]'
	touch $@

clean:
	rm -rf $(VENV) .venv-oldest .venv-newest .venv-audit $(FUZZ_VENV) demo runs site .pytest_cache .mypy_cache .ruff_cache
