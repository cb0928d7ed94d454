"""Tables of `docs/benchmarks.md` and of `docs/benchmarks/` that come from kept results.

What stands between ``<!-- table: columns.py gaps -->`` and ``<!-- end of table -->`` is what
``python benchmarks/columns.py gaps --print-only`` prints. This script writes these tables anew;
with ``--check`` it changes nothing and names the pages that differ.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import runpy
import shlex
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
DOCS = FOLDER.parent / "docs"
TABLE = re.compile(r"(<!-- table: (.+?) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def printed(command: str) -> str:
    """Output of a script with its arguments, from kept results alone."""
    script, *arguments = shlex.split(command)
    sys.argv = [script, *arguments, "--print-only"]
    with contextlib.redirect_stdout(io.StringIO()) as output:
        runpy.run_path(str(FOLDER / script), run_name="__main__")
    return output.getvalue().strip()


def with_tables(text: str) -> str:
    """Text of a page with its tables as the results have them."""
    return TABLE.sub(lambda part: f"{part[1]}\n{printed(part[2])}\n\n{part[3]}", text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing")
    options = parser.parse_args()
    sys.path.insert(0, str(FOLDER))  # scripts import their neighbours
    stale = []
    for page in [DOCS / "benchmarks.md", *sorted((DOCS / "benchmarks").glob("*.md"))]:
        text = page.read_text("utf-8")
        if (new := with_tables(text)) != text:
            stale.append(page.name)
            if not options.check:
                page.write_text(new, "utf-8")
    if stale and options.check:
        sys.exit(f"run make bench-pages; stale: {', '.join(stale)}")


if __name__ == "__main__":
    main()
