import math
from dataclasses import replace
from functools import partial

import graphs
import made_methods
import numpy as np
import pytest
import torch
from graphs import CPU, seeded
from made_methods import dense, in_double, two_convolutions
from scipy import sparse

from spgcl.engine.tensors import SparseMatrix
from spgcl.methods import mvgrl
from spgcl.methods.mvgrl import MVGRL, FullMatrix, diffusion_on_device
from spgcl.methods.parts import diffusion
from spgcl.methods.parts.diffusion import heat, personalised_pagerank, sharpened

make_graph = partial(graphs.make_graph, 30, 12, num_edges=60, uneven=True)
# The oracles have no batch norm, which is tested with the encoder.
fresh = partial(made_methods.fresh, MVGRL, batch_norm="none", diffusion="ppr", restart=0.2)


def naive_loss(views, weight, bias):
    """Every node, real and shuffled, of either view against the summary of the other one."""
    total = count = 0
    for (real, fake), (other, _) in (views, views[::-1]):
        summary = 1 / (1 + torch.exp(-other.sum(dim=0) / len(other)))
        for rows, sign in ((real, 1), (fake, -1)):
            for row in rows:
                total += math.log(1 + math.exp(-sign * (row @ weight @ summary + bias).item()))
                count += 1
    return total / count


@pytest.mark.parametrize(
    "settings",
    [{}, {"diffusion": "heat"}, {"keep": 2}, {"sharpen": True}],
    ids=["ppr", "heat", "cut", "sharpened"],
)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("sparse_features", [False, True])
def test_a_step_matches_nodes_with_the_other_views_summary(settings, directed, sparse_features):
    graph = make_graph(sparse_features=sparse_features, directed=directed)
    method, prepared = in_double(*fresh(graph, hidden=8, **settings))
    prepared.diffused = replace(prepared.diffused, features=prepared.graph.features)
    torch.nn.init.normal_(method.discriminator.weight, generator=seeded(1))
    torch.nn.init.constant_(method.discriminator.bias, 0.3)
    loss = method.loss(prepared, 0, seeded(5))
    order = torch.randperm(30, generator=seeded(5))
    state = {name: value.detach() for name, value in method.state_dict().items()}
    features = dense(prepared.graph.features)
    views = []
    for name, view in (("encoder", prepared.graph), ("diffused_encoder", prepared.diffused)):
        matrix = view.adjacency.dense().double()
        views.append([two_convolutions(state, name, matrix, rows) for rows in (features, features[order])])
    expected = naive_loss(views, state["discriminator.weight"], 0.3)
    assert loss.item() == pytest.approx(expected, rel=1e-9)
    torch.testing.assert_close(method.embed(prepared), views[0][0] + views[1][0])


def test_the_views_are_the_graph_and_its_diffusion():
    graph = make_graph()
    for settings, expected in (
        ({"restart": 0.3}, personalised_pagerank(graph, restart=0.3, keep=0)),
        ({"restart": 0.3, "keep": 3}, personalised_pagerank(graph, restart=0.3, keep=3)),
        ({"diffusion": "heat", "time": 2.0}, heat(graph, time=2.0, keep=0)),
        ({"sharpen": True}, sharpened(personalised_pagerank(graph, restart=0.2, keep=0), graph)),
    ):
        prepared = fresh(graph, **settings)[1]
        found = prepared.diffused.adjacency.dense().numpy()
        np.testing.assert_allclose(found, expected.toarray(), rtol=1e-6)
        assert prepared.diffused.features is prepared.graph.features


def test_only_some_entries_are_kept_of_a_large_graph(monkeypatch):
    graph = make_graph()
    for module in (diffusion, mvgrl):
        monkeypatch.setattr(module, "EXACT_UP_TO", 29)
    monkeypatch.setattr(mvgrl, "KEPT_ABOVE", 4)
    matrix = fresh(graph)[1].diffused.adjacency
    assert matrix.counts.max() == 4 and type(matrix) is SparseMatrix
    chosen = fresh(graph, keep=6)[1].diffused.adjacency
    assert chosen.counts.max() == 6


def random_matrix(density):
    generator = np.random.default_rng(3)
    values = generator.normal(size=(20, 20)) * (generator.random((20, 20)) < density)
    return sparse.csr_array(values.astype(np.float32))


def test_few_zeros_make_dense_products():
    assert type(diffusion_on_device(random_matrix(0.5), CPU)) is FullMatrix
    assert type(diffusion_on_device(random_matrix(0.02), CPU)) is SparseMatrix


def test_a_full_matrix_is_the_sparse_one_in_value_and_gradient():
    matrix = random_matrix(0.5)
    full, plain = diffusion_on_device(matrix, CPU), SparseMatrix.of(matrix, CPU)
    torch.testing.assert_close(full.dense(), plain.dense())
    torch.testing.assert_close(full.transposed.dense(), plain.transposed.dense())
    rows = torch.tensor([4, 4, 0])
    torch.testing.assert_close(full.select(rows).dense(), plain.select(rows).dense())
    gradients = []
    for kind in (full, plain):
        factor = torch.randn(20, 3, dtype=torch.float64, generator=seeded(0))
        factor.requires_grad_()
        product = kind @ factor
        product.square().sum().backward()
        gradients.append((product.detach(), factor.grad))
    for mine, other in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, other)
