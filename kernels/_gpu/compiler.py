"""Text of Triton functions to loaded functions, kept as readable files by content.

Triton reads a function's source from its file, and keeps the machine code it makes of it in
a cache of its own.
"""

import contextlib
import functools
import hashlib
import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from tsrnn.kernels._cpu.compiler import cache_dir


@functools.cache
def load(name: str, source: str) -> ModuleType:
    """Module of some source text, written where it can be read and imported from there.

    Parameters
    ----------
    name : str
        Stem of the file.
    source : str
        Python text of functions under ``triton.jit``.
    """
    path = source_file(name, source)
    if not _is_kept(path, source):
        _write(path, source)
    return _imported(path)


def source_file(name: str, source: str) -> Path:
    """Path of the file that keeps a source."""
    digest = hashlib.sha256(source.encode()).hexdigest()[:20]
    return cache_dir() / f"{name}_{digest}.py"


def _is_kept(path: Path, source: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") == source
    except (OSError, UnicodeDecodeError):
        return False


def _write(path: Path, source: str) -> None:
    """Write in one step: another process sees the whole file or none."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(source)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _imported(path: Path) -> ModuleType:
    name = "tsrnn_triton_" + "".join(c if c.isalnum() else "_" for c in path.stem)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
