"""Named benchmarks: table of entries, checked files, one reader per file format, synthetic graphs."""

from spgcl.datasets.dataset import Dataset, Splits, k_fold_splits, random_splits
from spgcl.datasets.loading import load, names
from spgcl.datasets.synthetic import contextual_block_model

__all__ = ["Dataset", "Splits", "contextual_block_model", "k_fold_splits", "load", "names", "random_splits"]
