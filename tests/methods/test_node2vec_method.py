from functools import partial

import graphs
import numpy as np
import pytest
import torch
from graphs import CPU
from made_methods import TINY_WALKS, trained_bytes

from spgcl.errors import InputError
from spgcl.face.estimator import Embedder
from spgcl.graph import Graph
from spgcl.methods import create
from spgcl.methods.parts.walks import random_walks
from spgcl.training.loop import draws

make_graph = partial(graphs.make_graph, num_features=3)
TINY = {**TINY_WALKS, "p": 0.5, "q": 2.0}


def fresh(name="node2vec", **settings):
    graph = make_graph()
    method = create(name, 3, num_nodes=graph.num_nodes, seed=0, settings=settings)
    return method, method.prepare(graph, CPU)


def test_the_walks_are_biased_by_p_and_q():
    """A small p turns walks back, a large q keeps them near; on the same draws as the walks themselves."""
    method, prepared = fresh(**TINY)
    method.loss(prepared, 0, draws(0, CPU))
    starts = method.skip_gram.order.repeat(3)
    expected = random_walks(prepared.paths, starts, 6, draws(0, CPU), p=0.5, q=2.0)
    assert torch.equal(prepared.memory["walks"], expected)


def test_with_p_and_q_of_one_it_is_deepwalk():
    plain = trained_bytes(*fresh(**TINY_WALKS, p=1.0, q=1.0))
    assert plain == trained_bytes(*fresh("deepwalk", **TINY_WALKS))
    assert plain != trained_bytes(*fresh(**TINY))


@pytest.mark.parametrize("changes", [{"p": 0.0}, {"q": 0.0}, {"q": 1e-39}, {"p": 1e-7}, {"q": 2e6}])
def test_biases_that_float32_cannot_compare_are_refused(changes):
    with pytest.raises(InputError, match=f"^{next(iter(changes))} is .*between 1e-06 and 1e\\+06"):
        create("node2vec", 3, num_nodes=4, seed=0, settings=changes)


@pytest.mark.parametrize("changes", [{"p": 1e-6, "q": 1e-6}, {"p": 1e6, "q": 1e-6}, {"p": 1e-6, "q": 1e6}])
def test_the_most_uneven_biases_can_be_walked_by(changes):
    vectors = Embedder("node2vec", **{**TINY, **changes}).fit_transform(make_graph())
    assert np.isfinite(vectors).all()


def test_edge_weights_lead_the_walks():
    graph = make_graph()
    sources = np.repeat(np.arange(40), graph.degrees)
    results = []
    for scale in (0.0, 1.0, 3.0):
        weights = 1 + scale * ((sources + graph.columns) % 3)
        weighted = Graph.from_edges(sources, graph.columns, graph.features, weights=weights)
        results.append(Embedder("node2vec", **TINY).fit_transform(weighted).tobytes())
    assert len(set(results)) == 3
