"""Benchmarks of this package against a frozen reference: time by phase, the floor, memory, growth."""
