"""Pages, docstrings and messages hold no misspelling that codespell knows."""

from pathlib import Path

import pytest

codespell = pytest.importorskip(
    "codespell_lib", reason="codespell comes with the lint extra: pip install -e '.[lint]'"
)

REPOSITORY = Path(__file__).parents[1]
CHECKED = (
    "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "examples", "tsrnn", "kernels",
    "datasets",
)  # fmt: skip


def status(*paths):
    """Exit status of codespell, 0 if nothing is found; its settings are in pyproject.toml."""
    return codespell.main("--toml", str(REPOSITORY / "pyproject.toml"), *map(str, paths))


def test_nothing_is_misspelled(capsys, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    found = status(*CHECKED)
    assert found == 0, capsys.readouterr().out


def test_a_misspelling_is_found(tmp_path, capsys):
    (tmp_path / "page.md").write_text("The recurrance is seperate.", encoding="utf-8")
    assert status(tmp_path) != 0
    said = capsys.readouterr().out
    assert "recurrence" in said
    assert "separate" in said


def test_the_linter_checks_the_same_files():
    recipe = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    (line,) = [line for line in recipe.splitlines() if "codespell" in line and "$(BIN)" in line]
    assert tuple(line.split()[1:]) == CHECKED
