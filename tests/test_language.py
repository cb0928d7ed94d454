"""Names and docstrings in the words of the field."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("tsrnn", "kernels", "datasets")
# Words that say nothing by themselves: "optimum" says more than "found".
BANNED = re.compile(r"_*(again|found|held|made|one|own|said|some|told|things?|which)")
# What a function counts, reads or masks belongs into its name.
BANNED_FUNCTION = re.compile(r"_(rows|numbers?|units|of)|" + BANNED.pattern)
# A docstring begins with a noun or a verb.
BANNED_OPENING = re.compile(
    r"(all|as|because|by|for|from|how|if|in|it|not|of|once|only|that|there|these|this|those|to|"
    r"what|what's|when|where|which|who|why|with)[.,:;]?"
)


# A sentence is read once: what these words point to has to be looked for.
BANNED_PHRASE = re.compile(r"\b(of which|so many)\b")


def named(node):
    """Return kind and name of what a node binds, if it binds one."""
    if isinstance(node, ast.FunctionDef):
        return "function", node.name
    if isinstance(node, ast.arg):
        return "argument", node.arg
    stored = isinstance(getattr(node, "ctx", None), ast.Store)
    if stored and isinstance(node, ast.Name | ast.Attribute):
        return "name", node.id if isinstance(node, ast.Name) else node.attr
    return "", ""


def banned(path):
    """Return names and openings of docstrings of a file that are banned, each with its line."""
    places = []
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        kind, name = named(node)
        if (BANNED_FUNCTION if kind == "function" else BANNED).fullmatch(name):
            places.append(f"{path}:{node.lineno} has the {kind} {name!r}")
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            docstring = ast.get_docstring(node) or ""
            if phrase := BANNED_PHRASE.search(docstring):
                places.append(f"{path}:{node.body[0].lineno} has a docstring with {phrase[0]!r}")
            opening = docstring.partition(" ")[0]
            if BANNED_OPENING.fullmatch(opening.lower()):
                places.append(f"{path}:{node.body[0].lineno} has a docstring from {opening!r} on")
    return places


# Names of labels in the package: what formats them is `tsrnn.data.quote`.
LABEL = re.compile(
    r"(.*\W)?(columns?|columns?\.name|(id|time|target)_cols?|(target|exog)_names|ids|labels?"
    r"|cutoffs?|last_times?)(\[.*\])?"
)


def unquoted(path):
    """Return labels that an f-string of a file formats by `repr`, alone or in a list."""
    places = []
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.FormattedValue):
            text = ast.unparse(node.value)
            listed = re.fullmatch(r"(?:list|sorted)\((.*)\)", text)
            if (node.conversion == ord("r") or listed) and LABEL.fullmatch(
                listed[1] if listed else text
            ):
                places.append(f"{path}:{node.lineno} formats {text} without quote()")
    return places


def modules():
    paths = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    return [path.relative_to(ROOT).as_posix() for path in paths]


@pytest.mark.parametrize("path", modules())
def test_names_are_those_of_the_field(path):
    assert not banned(path), "\n".join(banned(path))


@pytest.mark.parametrize("path", [path for path in modules() if path.startswith("tsrnn/")])
def test_labels_in_messages_are_quoted(path):
    assert not unquoted(path), "\n".join(unquoted(path))


@pytest.mark.parametrize("label", ["column!r", "frame.columns[0]!r", "list(data.exog_names)"])
def test_an_unquoted_label_is_seen(label, tmp_path, monkeypatch):
    (tmp_path / "a.py").write_text(f'text = f"{{{label}}}"\n')
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert len(unquoted("a.py")) == 1


def test_what_is_banned_is_seen(tmp_path, monkeypatch):
    (tmp_path / "a.py").write_text(
        'def _rows(own):\n    """What is there, of which I know."""\n    made = own\n'
    )
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert len(banned("a.py")) == 5
