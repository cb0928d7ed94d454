"""The commands of the page on the command line do what stands there."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"
FENCE = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the page is written for a POSIX shell")


def blocks(language):
    found = FENCE.findall(PAGE.read_text(encoding="utf-8"))
    return [block for name, block in found if name == language]


def commands():
    """Commands of the page in their order, each with the output that stands below it."""
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.replace("\\\n", "").partition("\n")
            yield command, output


def agree(expected, printed):
    """Hold words exactly, numbers to a thousandth, and white space not at all."""
    pairs = [re.split(r"[\s,]+", text.strip()) for text in (expected, printed)]
    assert len(pairs[0]) == len(pairs[1]), printed
    for word, other in zip(*pairs, strict=True):
        if re.fullmatch(r"-?\d+\.\d+", word):
            np.testing.assert_allclose(float(other), float(word), rtol=1e-3, err_msg=printed)
        else:
            assert other == word, printed


def in_a_shell(command, folder):
    """Run a command with pipes, `tsrnn` being that of this interpreter."""
    script = folder / "bin" / "tsrnn"
    script.parent.mkdir(exist_ok=True)
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m tsrnn.cli "$@"\n')
    script.chmod(0o755)
    path = f"{script.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def test_the_commands_print_what_stands_below_them(tsrnn, tmp_path):
    pytest.importorskip("polars", reason="the page writes parquet")
    for block in blocks("python"):
        exec(compile(block, str(PAGE), "exec"), {})
    for command, output in commands():
        if "|" in command:
            agree(output, in_a_shell(command, tmp_path))
            continue
        command, _, file = command.partition(" > ")
        done = tsrnn(shlex.split(command)[1:])
        assert done.exit_code == 0, done.stderr
        if file:
            assert done.stdout
        else:
            agree(output, done.stdout)
