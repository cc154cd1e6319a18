"""Kernels for CUDA: sources beside this file, and how they are launched."""
