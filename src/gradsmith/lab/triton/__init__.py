"""Triton kernels on a machine without a GPU: what the interpreter lacks, and a guard over what kernels do to memory.

Only worker processes install it: it changes triton and torch for the whole process.
"""
