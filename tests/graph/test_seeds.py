import numpy as np
import pytest

from spgcl import Embedder
from spgcl.datasets import contextual_block_model, load, random_splits
from spgcl.errors import InputError
from spgcl.graph.checks import checked_seed
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
        lambda: Embedder(seed=seed, hidden=4, steps=1).fit(load("csbm-homophilic")),
        lambda: create("raw", 3, seed=seed),
        lambda: random_splits(np.arange(20) % 2, seed=seed),
        lambda: contextual_block_model(**MODEL, seed=seed),
    )
    for use in users:
        with pytest.raises(InputError, match=r"^seed is .*; it must be a whole number, 0 or more") as caught:
            use()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("seed", [0, 7, 2**63 - 1, np.int64(5), np.uint8(3), np.array(4)], ids=repr)
def test_whole_numbers_are_seeds(seed):
    assert checked_seed(seed) == int(seed) and type(checked_seed(seed)) is int
