import numpy as np
import pytest
from graphs import refusing

from spgcl import Embedder
from spgcl.datasets import contextual_block_model, load, random_splits
from spgcl.graph.checks import checked_ids, checked_seed
from spgcl.methods import create

MODEL = {
    "num_nodes": 20,
    "num_classes": 2,
    "average_degree": 4,
    "homophily": 0.5,
    "num_features": 3,
    "signal": 1.0,
}
ODD = [None, "a", "1", -1, 1.5, 1.0, True, 2**63, [1], np.array([1, 2])]


@pytest.mark.parametrize("seed", ODD, ids=repr)
def test_what_is_no_seed_is_refused_in_one_line(seed):
    users = (
        lambda: Embedder("spgcl", seed=seed, hidden=4, steps=1).fit(load("csbm-homophilic")),
        lambda: create("raw", 3, seed=seed),
        lambda: random_splits(np.arange(20) % 2, seed=seed),
        lambda: contextual_block_model(**MODEL, seed=seed),
    )
    for use in users:
        with refusing("seed is ", "whole number"):
            use()


@pytest.mark.parametrize("seed", [0, 7, 2**63 - 1, np.int64(5), np.uint8(3), np.array(4)], ids=repr)
def test_whole_numbers_are_seeds(seed):
    assert checked_seed(seed) == int(seed) and type(checked_seed(seed)) is int


def test_unsigned_ids_beyond_int64_become_text():
    assert checked_ids(np.array([2**63, 1], dtype=np.uint64), 2).tolist() == [str(2**63), "1"]
