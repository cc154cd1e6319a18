"""One JSON line a measurement, with the machine and the versions it was taken on."""

from spgcl.bench.record import append, machine

__all__ = ["append", "machine"]
