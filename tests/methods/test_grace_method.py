from functools import partial

import graphs
import made_methods
import numpy as np
import pytest
from contrast_oracle import RATES, assert_step_is_objective
from graphs import seeded
from made_methods import in_double

from spgcl.engine.tensors import SparseMatrix
from spgcl.graph import Graph
from spgcl.methods.grace import GRACE

make_graph = partial(graphs.make_graph, 40, 10, num_edges=80)
fresh = partial(made_methods.fresh, GRACE)


@pytest.mark.parametrize("sparse_features", [False, True])
def test_a_step_is_the_objective_over_two_views(sparse_features):
    graph = make_graph(sparse_features=sparse_features)
    method, prepared = in_double(*fresh(graph, hidden=6, projection=5, temperature=0.3, **RATES))
    assert isinstance(prepared.graph.features, SparseMatrix) == sparse_features
    assert_step_is_objective(method, prepared)


def test_equal_views_of_equal_nodes_cannot_be_told_apart():
    """Without augmentation and with one feature vector for all, every similarity is 1: log(2 N - 1)."""
    ends = np.arange(10)
    graph = Graph.from_edges(ends, (ends + 1) % 10, np.ones((10, 3)))
    rates = dict.fromkeys(("drop_edges_first", "drop_edges_second", "mask_features_first"), 0.0)
    method, prepared = fresh(graph, hidden=4, **rates)
    loss = method.loss(prepared, 0, seeded())
    assert loss.item() == pytest.approx(np.log(19), rel=1e-5)
