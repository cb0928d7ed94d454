"""Links, anchors and pictures of all pages lead somewhere, and every page is in the guide."""

import ast
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

REPOSITORY = Path(__file__).parents[1]
DOCS = REPOSITORY / "docs"
BUILT = ("_build", "generated", "auto_examples")  # by Sphinx, from docstrings and examples/
PAGES = sorted(p for p in DOCS.rglob("*.md") if p.relative_to(DOCS).parts[0] not in BUILT)
CHECKED = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *PAGES]

FENCE = re.compile(r"^(`{3,})([^\n]*)\n(.*?)^\1\s*$", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"`[^`]+`")
LINK = re.compile(r"!?\[[^\]]*\]\(\s*([^)\s]+)(?:\s+\"[^\"]*\")?\s*\)")
ROOMS = "tsrnn|kernels|datasets|tests|benchmarks|examples|docs(?!/_build)"
PATH = re.compile(rf"`((?:{ROOMS})/[^`\s*<]+)`")
HEADING = re.compile(r"^#{1,3} +(.+?)\s*$", re.MULTILINE)  # as deep as conf.py gives anchors


def prose(text):
    """A page without code, in which brackets are no links."""
    return INLINE_CODE.sub("code", FENCE.sub("", text))


def links(text):
    """Targets of all links and pictures of a page."""
    return LINK.findall(prose(text))


def anchors(text):
    """Anchors of the headings of a page, as MyST and GitHub make them."""
    found = []
    for heading in HEADING.findall(FENCE.sub("", text)):
        words = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
        slug = words.replace(" ", "-")
        again = sum(slug == other.partition("#")[0] for other in found)
        found.append(f"{slug}#{again}" if again else slug)
    return {slug.replace("#", "-") for slug in found}


def fault(page, target):
    """What is wrong with a link of a page, or None."""
    parts = urlsplit(target)
    if parts.scheme:
        return fault_outside(parts)
    text = page.read_text(encoding="utf-8")
    if parts.path:
        place = destination(page, parts.path)
        if place is None:
            return "there is no such file"
        text = place.read_text(encoding="utf-8") if place.suffix == ".md" else ""
    if parts.fragment and parts.fragment not in anchors(text):
        return f"no heading makes the anchor #{parts.fragment}"
    return None


def fault_outside(parts):
    """What is wrong with the form of an address outside; it is not visited."""
    if parts.scheme == "mailto":
        return None if "@" in parts.path else "no address of mail"
    return None if parts.scheme == "https" and "." in parts.netloc else "not an https address"


def destination(page, path):
    """The file that a relative link means; of a page that is built, what it is built from."""
    place = (page.parent / path).resolve()
    candidates = [place, place.with_name(f"{place.name}.md")]
    if place.parent == DOCS / "auto_examples":
        examples = REPOSITORY / "examples"
        candidates = [examples / ("README.rst" if place.name == "index" else f"{place.name}.py")]
    return next((found for found in candidates if found.is_file()), None)


def toctree(page):
    """Pages that the toctrees of a page list, as files; generated ones are left out."""
    fences = FENCE.findall(page.read_text(encoding="utf-8"))
    bodies = [body for _, info, body in fences if info.strip() == "{toctree}"]
    entries = [line.strip() for body in bodies for line in body.splitlines()]
    entries = [e for e in entries if e and not e.startswith(":")]
    return [page.parent / f"{e}.md" for e in entries if e.split("/")[0] not in BUILT]


@pytest.mark.parametrize("page", CHECKED, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    faults = {target: fault(page, target) for target in links(text)}
    assert not {target: said for target, said in faults.items() if said}


@pytest.mark.parametrize("page", CHECKED, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_paths_of_the_repository_exist(page):
    paths = PATH.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    assert not [path for path in paths if not (REPOSITORY / path).exists()]


def test_there_are_links_to_check():
    assert sum(len(links(page.read_text(encoding="utf-8"))) for page in CHECKED) > 50


def test_every_page_is_in_one_toctree():
    listed = toctree(DOCS / "index.md")
    assert len(listed) == len(set(listed))
    assert sorted(listed) == [page for page in PAGES if page != DOCS / "index.md"]


def test_every_page_with_code_is_run():
    source = (REPOSITORY / "tests/test_docs.py").read_text(encoding="utf-8")
    (pages,) = [
        ast.literal_eval(node.value)
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PAGES"
    ]
    coded = [
        str(page.relative_to(REPOSITORY).as_posix())
        for page in [REPOSITORY / "README.md", *PAGES]
        if any(info == "python" for _, info, _ in FENCE.findall(page.read_text(encoding="utf-8")))
    ]
    assert sorted(pages) == sorted(coded)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("other.md", None),
        ("other", None),
        ("other.md#two-words", None),
        ("other.md#two-words-1", None),
        ("other.md#code-inside", None),
        ("#here", None),
        ("https://example.org/a", None),
        ("missing.md", "there is no such file"),
        ("other.md#absent", "no heading makes the anchor #absent"),
        ("#absent", "no heading makes the anchor #absent"),
        ("http://example.org", "not an https address"),
        ("https://example", "not an https address"),
    ],
)
def test_a_wrong_link_is_found(tmp_path, target, said):
    other = "# Other\n## Two words\n### Two words\n## `code` inside?\n```python\n# absent\n```\n"
    (tmp_path / "other.md").write_text(other, encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(f"# Here\n[text]({target}) and `[no](link.md)`\n", encoding="utf-8")
    assert links(page.read_text(encoding="utf-8")) == [target]
    assert fault(page, target) == said
