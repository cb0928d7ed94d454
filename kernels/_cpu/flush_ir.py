"""Entries to kernels, which run them with subnormal numbers counted as zero.

Processors take many times as long for arithmetic on subnormal numbers, which is where states
and gradients that die out end. How to treat them is a mode of a thread: an entry sets it in the
thread that it is called in and restores it.
"""

from collections.abc import Mapping, Sequence

import llvmlite.binding as llvm

PREFIX = "flushing_"  # of an entry's name, before that of its kernel

# Two stretches of code, before and after the call, and the intrinsics that they call.
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
    """LLVM source of the entries of some kernels.

    Parameters
    ----------
    pointers : mapping
        Names of the pointers that each kernel takes; the keys are the kernels' names.
    sizes : sequence of str
        Names of the integers that follow.
    triple : str, optional
        Machine to write for, as LLVM names it; by default this one. On one whose mode is not
        known here an entry does nothing but call.
    """
    machine = (triple or llvm.get_default_triple()).partition("-")[0]
    before, after, declarations = _MODES.get(machine, ("", "", ""))
    functions = []
    for kernel, names in pointers.items():
        arguments = ", ".join([*(f"ptr %{p}" for p in names), *(f"i64 %{s}" for s in sizes)])
        # Not inlined: LLVM may move arithmetic past what sets the mode, but not past a call.
        functions.append(
            f"define void @{PREFIX}{kernel}({arguments}) nounwind {{\n{before}"
            f"  call void @{kernel}({arguments}) noinline\n{after}  ret void\n}}\n"
        )
    return "\n".join(["", *functions, declarations])
