"""One machine speaks for others: kernels for lower levels of x86-64, and compiled for ARM."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import pytest
import torch

from tsrnn.kernels import cells
from tsrnn.kernels._cpu import compiler, kalman_ir
from tsrnn.kernels._cpu.compiler import Processor, entries_ir, processor
from tsrnn.kernels._cpu.kernel_ir import POINTERS, SIZES, kernel_ir
from tsrnn.kernels._dense import ir

PROGRAM = Path(__file__).with_name("_processors.py")
_program = runpy.run_path(str(PROGRAM))
CASES, THREADS, solutions = (_program[name] for name in ("CASES", "THREADS", "solutions"))
LEVELS = {"x86-64-v2": "sse4.2", "x86-64-v3": "fma"}
OF_TORCH = {"matrices", "matrices, double"}  # gradients of their parameters are torch's products
FEATURES = llvm.get_host_cpu_features()


def require(feature):
    if not FEATURES.get(feature):
        pytest.skip(f"this processor has no {feature}")


@pytest.fixture(scope="module", params=["", *LEVELS], ids=["this", *LEVELS])
def solved(request, tmp_path_factory):
    """Solutions of this processor, or of a lower level of x86-64."""
    if not request.param:
        return solutions()
    require(LEVELS[request.param])
    path = tmp_path_factory.mktemp("processors") / "solutions.pt"
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(path)],
        env=os.environ | {"TSRNN_CPU": request.param, "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return torch.load(path)


@pytest.mark.few("this")
def test_results_do_not_depend_on_the_number_of_threads(solved):
    for name, by_threads in solved.items():
        for count in THREADS[1:]:
            for result, value in by_threads[count].items():
                if not (name in OF_TORCH and result == "g_params"):
                    assert torch.equal(value, by_threads[1][result]), (name, count, result)


def test_results_are_those_of_the_loop_in_torch(solved, assert_close):
    for name, by_threads in solved.items():
        expected = CASES[name].solve("reference")
        for result, value in by_threads[1].items():
            try:
                assert_close(value, expected[result], 512.0)
            except AssertionError as error:
                raise AssertionError(f"{name}, {result}: {error}") from None


@pytest.mark.parametrize("solved", ["x86-64-v3"], indirect=True)
def test_processors_with_multiply_add_give_the_same_bits(solved):
    for name, by_threads in solutions().items():
        for result, value in by_threads[1].items():
            if not (name in OF_TORCH and result == "g_params"):
                assert torch.equal(value, solved[name][1][result]), (name, result)


NEON = "aarch64-unknown-linux-gnu"


def neon_assembly(source):
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        target = llvm.Target.from_triple(NEON)
    except RuntimeError:
        pytest.skip("this build of LLVM does not know 64-bit ARM")
    machine = target.create_target_machine(cpu="generic", features="+neon", opt=3)
    return machine.emit_assembly(compiler.optimised(source, machine))


def check_neon(text, names):
    assert "fmla" in text
    assert "msr\tFPCR" in text  # subnormal numbers count as zero there too
    called = set(re.findall(r"\tbl?\t(\w+)$", text, re.MULTILINE))
    assert called <= {"memset", *names}  # no arithmetic is left to a library


@pytest.mark.few("cell0-float32")
@pytest.mark.parametrize(
    ("cell", "dtype"), [(cells.para_rnn(2), "float32"), (cells.newton_gru(), "float64")]
)
def test_code_for_neon(cell, dtype):
    pointers = {kind: POINTERS[kind] for kind in ("forward", "backward")}
    entries = entries_ir(pointers, SIZES, NEON)
    check_neon(neon_assembly(kernel_ir(cell, dtype) + entries), pointers)


def test_code_of_matrices_for_neon(monkeypatch):
    monkeypatch.setattr(ir, "processor", lambda: Processor("generic", "+neon", 16))
    form = cells.para_rnn(19).step.form
    source = ir.dense_ir(form, "float32") + entries_ir(ir.POINTERS, ir.SIZES, NEON)
    check_neon(neon_assembly(source), {*ir.POINTERS, "product"})


def test_code_of_the_kalman_filter_for_neon(monkeypatch):
    monkeypatch.setattr(kalman_ir, "processor", lambda: Processor("generic", "+neon", 16))
    source = kalman_ir.kalman_ir() + entries_ir(kalman_ir.POINTERS, kalman_ir.SIZES, NEON)
    check_neon(neon_assembly(source), kalman_ir.POINTERS)


def test_unknown_levels_and_those_out_of_reach_are_refused(monkeypatch):
    ask = processor.__wrapped__
    monkeypatch.setenv("TSRNN_CPU", "avx2")
    with pytest.raises(ValueError, match="TSRNN_CPU must be one of x86-64-v2, .*; got 'avx2'"):
        ask()
    monkeypatch.setenv("TSRNN_CPU", "x86-64-v4")
    monkeypatch.setattr(llvm, "get_host_cpu_name", lambda: "nehalem")
    features = type(FEATURES)({"sse4.2": True})
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: features)
    with pytest.raises(ValueError, match=r"this processor, nehalem, .*\(avx512vl\)\. Name a lower"):
        ask()
    monkeypatch.setenv("TSRNN_CPU", "x86-64-v2")
    assert ask() == Processor("x86-64-v2", "", 16)
    monkeypatch.delenv("TSRNN_CPU")
    assert ask() == Processor("nehalem", "+sse4.2", 16)
