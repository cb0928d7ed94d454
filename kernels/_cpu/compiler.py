"""LLVM source to machine code, cached on disk by content, compiled once per machine.

llvmlite, the compiler library under numba, is used directly: a kernel is a plain loop over explicit
vectors, which LLVM compiles in a fraction of the time that type inference from Python takes.

Kernels are called through entries that flush subnormal numbers to zero, because processors are many
times slower on them, and decaying states and gradients become subnormal. This mode belongs to a
thread: an entry sets it in the calling thread and restores it.
"""

import contextlib
import ctypes
import functools
import hashlib
import os
import stat
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm

_lock = threading.RLock()


def _forget_lock() -> None:
    global _lock
    _lock = threading.RLock()  # another thread may hold it at a fork


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)


class Processor(NamedTuple):
    """Target processor: its LLVM names, and bytes of a vector register."""

    name: str
    features: str
    register_bytes: int


# Levels of x86-64: a feature that identifies the level, and the width of registers.
_LEVELS = {"x86-64-v2": ("sse4.2", 16), "x86-64-v3": ("fma", 32), "x86-64-v4": ("avx512vl", 64)}


@functools.cache
def processor() -> Processor:
    """Host processor, or the level of x86-64 named by ``TSRNN_CPU``, which this host must reach."""
    here, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features()
    level = os.environ.get("TSRNN_CPU")
    if not level:
        width = 64 if features.get("avx512f") else 32 if features.get("avx") else 16
        return Processor(here, features.flatten(), width)
    if level not in _LEVELS:
        raise ValueError(
            f"TSRNN_CPU must be one of {', '.join(_LEVELS)}, or not be set; got {level!r}"
        )
    needed, width = _LEVELS[level]
    if not features.get(needed):
        raise ValueError(
            f"TSRNN_CPU={level} asks for instructions that this processor, {here}, does not have "
            f"({needed}). Name a lower level, or none"
        )
    return Processor(level, "", width)


def _target_machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    name, features, _ = processor()
    return target.create_target_machine(cpu=name, features=features, opt=3, jit=True)


def cache_dir() -> Path:
    """Folder of the compiled kernels.

    The environment variable ``TSRNN_CACHE_DIR``, else the user's cache folder, or a temporary
    folder if that is not writable.
    """
    chosen = os.environ.get("TSRNN_CACHE_DIR")
    if not chosen:
        import platformdirs  # not installed on bare test machines, which name a folder

        chosen = platformdirs.user_cache_dir("tsrnn")
    # Without HOME and a user entry, as in a container, "~" is not expanded.
    chosen = os.path.expanduser(chosen)
    user = str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    shared = Path(tempfile.gettempdir()) / f"tsrnn-{user}"
    for folder in (Path(chosen), shared):
        if folder.parts[:1] == ("~",):
            continue
        path = folder / "kernels"
        try:
            # Only this user may write machine code there.
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.mkdir(exist_ok=True, mode=0o700)
        except OSError:
            continue
        if os.access(path, os.W_OK) and (folder != shared or _is_private(folder)):
            return path
    raise OSError(
        f"no folder for compiled kernels: {chosen} cannot be written. Set the environment "
        "variable TSRNN_CACHE_DIR to a folder that can"
    )


def _is_private(folder: Path) -> bool:
    """True if only this user can have written there."""
    if not hasattr(os, "getuid"):
        return True
    entry = folder.lstat()
    mine = stat.S_ISDIR(entry.st_mode) and entry.st_uid == os.getuid()
    return mine and not entry.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def object_file(name: str, source: str) -> Path:
    """Path of the machine code of `source` on this processor."""
    name_of_cpu, features, _ = processor()
    machine = [llvm.get_default_triple(), name_of_cpu, features]
    content = "\n".join([source, llvmlite.__version__, *machine])
    digest = hashlib.sha256(content.encode()).hexdigest()[:20]  # 80 bits: no collisions
    return cache_dir() / f"{name}_{digest}.o"


def is_kept(path: Path) -> bool:
    """True if the machine code at `path` is complete."""
    return path in _engines or _read(path) is not None


def load(name: str, source: str, functions: dict[str, int]) -> dict[str, Callable[..., None]]:
    """Entries to functions of an LLVM module, compiled unless cached in a file named after `name`.

    `functions` has the number of pointer-sized arguments of each. Entries take integers and
    addresses and run without the GIL.
    """
    path = object_file(name, source)
    with _lock:
        if path not in _engines:
            _engines[path] = _link(_read(path) or _compile(path, source))
        engine = _engines[path]
    return {
        function: ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count)(
            engine.get_function_address(PREFIX + function)
        )
        for function, count in functions.items()
    }


_engines: dict[Path, Any] = {}  # machine code lives as long as its engine


def _link(code: bytes) -> Any:
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def _compile(path: Path, source: str) -> bytes:
    machine = _target_machine()
    code: bytes = machine.emit_object(optimised(source, machine))
    # If it cannot be written, as on a full disk, the next process compiles again.
    with contextlib.suppress(OSError):
        write_file(path, hashlib.sha256(code).digest() + code)
    return code


def optimised(source: str, machine: Any) -> Any:
    """LLVM module of `source`, optimised for an llvmlite target machine."""
    module = llvm.parse_assembly(source)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = False  # vectors are explicit
    # No unrolling: a loop already runs vector operations; with AVX-512 unrolling doubled the time
    # to compile and saved none. Loops that gain from it ask for it.
    options.loop_unrolling = options.loop_interleaving = False
    llvm.create_pass_builder(machine, options).getModulePassManager().run(
        module, llvm.create_pass_builder(machine, options)
    )
    return module


def _read(path: Path) -> bytes | None:
    """Machine code from `path`; None if it is missing, damaged or unreadable."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, code = content[:32], content[32:]
    return code if hashlib.sha256(code).digest() == digest else None


def write_file(path: Path, content: bytes) -> None:
    """Write atomically: another process sees the whole file or none."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


PREFIX = "flushing_"  # of an entry's name, before that of its kernel

# Code before and after the call, and the intrinsics in it.
_X86 = (
    """\
  %old = alloca i32
  %new = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %old)
  %bits = load i32, ptr %old
  %flushing = or i32 %bits, 32832  ; results (bit 15) and operands (bit 6)
  store i32 %flushing, ptr %new
  call void @llvm.x86.sse.ldmxcsr(ptr %new)
""",
    "  call void @llvm.x86.sse.ldmxcsr(ptr %old)\n",
    "declare void @llvm.x86.sse.stmxcsr(ptr)\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)\n",
)
_ARM = (
    """\
  %bits = call i64 @llvm.aarch64.get.fpcr()
  %flushing = or i64 %bits, 16777216  ; bit 24: results and operands
  call void @llvm.aarch64.set.fpcr(i64 %flushing)
""",
    "  call void @llvm.aarch64.set.fpcr(i64 %bits)\n",
    "declare i64 @llvm.aarch64.get.fpcr()\ndeclare void @llvm.aarch64.set.fpcr(i64)\n",
)
_MODES = {"x86_64": _X86, "aarch64": _ARM, "arm64": _ARM}


def entries_ir(
    pointers: Mapping[str, Sequence[str]], sizes: Sequence[str], triple: str | None = None
) -> str:
    """LLVM source of the entries of kernels: pointers by the kernel's name, then integers `sizes`.

    The target machine `triple` is this one by default. For a machine without a known mode, an entry
    only makes the call.
    """
    machine = (triple or llvm.get_default_triple()).partition("-")[0]
    before, after, declarations = _MODES.get(machine, ("", "", ""))
    functions = []
    for kernel, names in pointers.items():
        arguments = ", ".join([*(f"ptr %{p}" for p in names), *(f"i64 %{s}" for s in sizes)])
        # Not inlined: LLVM may move arithmetic past the code that sets the mode, not past a call.
        functions.append(
            f"define void @{PREFIX}{kernel}({arguments}) nounwind {{\n{before}"
            f"  call void @{kernel}({arguments}) noinline\n{after}  ret void\n}}\n"
        )
    return "\n".join(["", *functions, declarations])
