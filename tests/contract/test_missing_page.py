"""The table of the page on missing values says what each class does."""

import re
from pathlib import Path

import pytest

from tsrnn.models import MODELS, model_class

PAGE = Path(__file__).parents[2] / "docs/howto/missing.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text("utf-8").splitlines()
    if line.startswith("| ") and line.count("|") == 6
][2:]


def rows_of(name):
    """Rows of the table that name a class."""
    return [row for row in ROWS if f"`{name}`" in row[0]]


FORECASTERS = [name for name, model in MODELS.items() if model.module != "tsrnn.erm"]


@pytest.mark.parametrize("name", FORECASTERS)
def test_each_class_has_a_row(name):
    """Classes that skip missing values at their default arguments stand in a row that says so."""
    said = {row[1] for row in rows_of(name)}
    assert said, f"{name} is in no row of the table"
    skips = "keep" in model_class(name).legal_missing
    assert ("skipped" in said) == skips
    assert skips or said == {"interpolated"}


def test_rows_name_classes_and_say_what_is_done():
    assert {row[1] for row in ROWS} == {"skipped", "interpolated"}
    named = {name for row in ROWS for name in re.findall(r"`([A-Z]\w+)`", row[0])}
    assert named == set(FORECASTERS)
