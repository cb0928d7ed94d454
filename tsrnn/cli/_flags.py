"""Messages of the package in the words of the command line: flags in place of arguments."""

from __future__ import annotations

import re
import shlex

# Arguments of models on how data are read -> options.
OPTIONS = {
    "target": "--target",
    "id_col": "--id-col",
    "time_col": "--time-col",
    "freq": "--freq",
    "known_ahead": "--known-ahead",
    "random_state": "--random-state",
    "missing": "--missing",
    "strict": "--strict",
    "support": "--support",
    "verbose": "--quiet",
}
# Arguments named in messages -> options; `verbose` is the reverse of --quiet.
FLAGS = {name: flag for name, flag in OPTIONS.items() if name != "verbose"} | {
    "h": "--h",
    "horizon": "--h",
    "level": "--level",
    "X_future": "--future",
    "align": "--align",
    "sep": "--sep",
    "decimal": "--decimal",
    "encoding": "--encoding",
    "time_format": "--time-format",
}
# Names that are no English words, so they always mean the argument.
NAMES = [name for name in FLAGS if "_" in name]
_VALUE = r"""'[^']*'|"[^"]*"|\[[^\]]*\]|\([^)]*\)|\.\.\.|[^\s,;.()\]]+(?:\.[^\s,;.()\]]+)*"""
_BEFORE = r"(?<![\w'\"./-])"
# Advice to call Python -> advice for the command line.
CALLS = {
    r"Convert it before: pd\.to_datetime\(\.\.\., format=(.*)\)": r"Say so by --time-format \1",
    r"pd\.read_csv\(\.\.\., decimal=.*?, thousands=.*?\) or the other way round": (
        "--decimal '.' or --decimal ','"
    ),
    r"Construct with (.*), fit again and give them as X_future": (
        r"Give \1, and their values by --future"
    ),
    r"predict\(align=True\)": "--align",
    r"(Correct these rows or drop them|such as totals); codes .* astype\(\"category\"\)": r"\1",
    r"Convert it: put .*, then astype\('float64'\)": (
        "Write numbers, and leave fields without one empty"
    ),
    r"Convert it: pd\.read_csv\(\.\.\., decimal=.*\) where .*, or pd\.to_numeric; drop": (
        "Correct them, or give --decimal , where they have decimal commas; drop"
    ),
    "forecast by target, or drop the others": (
        "forecast by --target, or leave the others out by --drop"
    ),
}
GIVEN = re.compile(rf"{_BEFORE}({'|'.join(FLAGS)})=({_VALUE})")
NAMED = re.compile(rf"{_BEFORE}({'|'.join(NAMES)})(?![\w'\"=/])")


def in_flags(message: str) -> str:
    """Return a message with flags in place of arguments, ``--time-col`` for ``time_col``."""
    for call, option in CALLS.items():
        message = re.sub(call, option, message)
    message = GIVEN.sub(lambda match: _flag(match[1], match[2]), message)
    return NAMED.sub(lambda match: FLAGS[match[1]], message)


def _flag(name: str, value: str) -> str:
    """Write flag and value for a shell."""
    if value in ("True", "False"):
        return FLAGS[name] if value == "True" else f"no {FLAGS[name]}"
    if value.startswith(("[", "(")):
        items = re.findall(r"""'([^']*)'|"([^"]*)"|([^\s,\[\]()]+)""", value)
        # An absent bound is left out: 0,
        text = ",".join("".join(parts).replace("None", "") for parts in items)
    else:
        text = value[1:-1] if value[0] in "'\"" else value
    return f"{FLAGS[name]} {text if text == '...' else shlex.quote(text)}"
