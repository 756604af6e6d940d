# `make demo` and `make test` do all set-up themselves; a second run does not install again.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test lint types soak clean

demo: $(VENV)/.installed
	$(BIN)/lapwing learn Rooms-16 --dim 11 --out demo
	@echo "Open demo/report.html in a browser; the pictures are beside it: eigenvectors.png, curves.png, spectrum.png"

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-test
	$(BIN)/mypy

# Kills, damaged files and failing disks against the real commands, for so many seconds.
SECONDS ?= 600
soak: $(VENV)/.installed
	$(BIN)/python benchmarks/soak --seconds $(SECONDS)

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml constraints.txt
	$(PIP) --editable .
	touch $@

$(VENV)/.installed-test: $(VENV)/.created pyproject.toml constraints.txt
	$(PIP) --editable '.[test]'
	touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) demo runs .pytest_cache .mypy_cache .ruff_cache
