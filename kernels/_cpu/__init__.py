"""Kernels of the CPU: LLVM source, its compiler, and calls over tensors and arrays."""
