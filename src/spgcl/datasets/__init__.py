"""Named benchmarks: the table of entries, checked files, one reader a file format, synthetic graphs."""

from spgcl.datasets.dataset import Dataset, Splits, random_splits
from spgcl.datasets.loading import load, names
from spgcl.datasets.synthetic import contextual_block_model

__all__ = ["Dataset", "Splits", "contextual_block_model", "load", "names", "random_splits"]
