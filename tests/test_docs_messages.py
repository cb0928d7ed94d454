"""The page on errors and warnings quotes messages that the package has."""

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PAGE = REPOSITORY / "docs/howto/messages.md"
FOREIGN = {"This ... instance is not fitted yet"}  # of scikit-learn


def quoted(text):
    """First cells of all tables but their heads: messages, with dots for what varies."""
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    return [cell for cell in rows if cell not in ("message", "---")]


def strings():
    """Every string in the package's code; of an f-string its constant parts."""
    files = [file for room in ("tsrnn", "kernels") for file in (REPOSITORY / room).rglob("*.py")]
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in files)
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return "\n".join({node.value for node in nodes if isinstance(node.value, str)})


@pytest.fixture(scope="module")
def said():
    return strings()


def unsaid(message, said):
    """Parts of a message that no string of the package has."""
    parts = [part.strip() for part in re.split(r"\.\.\.", message)]
    return [part for part in parts if part not in said]


def test_every_message_of_the_page_is_one_of_the_package(said):
    messages = set(quoted(PAGE.read_text(encoding="utf-8"))) - FOREIGN
    assert len(messages) > 15
    assert not {message: unsaid(message, said) for message in messages if unsaid(message, said)}


def test_a_message_that_is_not_there_is_found(said):
    assert unsaid("level is in ... parts of a thousand", said) == ["parts of a thousand"]
