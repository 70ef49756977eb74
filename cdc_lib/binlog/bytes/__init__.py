"""Bytes and integers: the primitives of all kernels."""
