"""CPU kernels: LLVM source, its compiler, and calls on tensors and arrays."""
