import math
from functools import partial

import graphs
import made_methods
import pytest
import torch
from differences import assert_gradients_match_central_differences
from graphs import seeded
from made_methods import dense, in_double, two_convolutions

from spgcl.engine.tensors import SparseMatrix
from spgcl.methods.dgi import DGI
from spgcl.methods.parts.discriminators import Bilinear, noise_contrastive

make_graph = partial(graphs.make_graph, 30, 12, num_edges=60, uneven=True)
# The oracles have no batch norm, which is tested with the encoder.
fresh = partial(made_methods.fresh, DGI, batch_norm="none")


def naive_cross_entropy(positive, negative):
    total = 0.0
    for score in positive.tolist():
        total -= math.log(1 / (1 + math.exp(-score)))
    for score in negative.tolist():
        total -= math.log(1 - 1 / (1 + math.exp(-score)))
    return total / (len(positive) + len(negative))


def test_the_objective_is_the_equation():
    generator = seeded(0)
    positive = torch.randn(7, generator=generator, dtype=torch.float64) * 3
    negative = torch.randn(5, generator=generator, dtype=torch.float64) * 3
    expected = naive_cross_entropy(positive, negative)
    assert noise_contrastive(positive, negative).item() == pytest.approx(expected, rel=1e-12)


def test_scores_that_are_sure_stay_finite():
    sure = torch.tensor([1e4])
    assert noise_contrastive(sure, -sure).item() == 0
    assert noise_contrastive(-sure, sure).item() == pytest.approx(1e4)


@pytest.mark.parametrize("sparse_features", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_a_step_tells_nodes_from_shuffled_ones(directed, sparse_features):
    graph = make_graph(sparse_features=sparse_features, directed=directed)
    method, prepared = in_double(*fresh(graph, hidden=8))
    assert isinstance(prepared.graph.features, SparseMatrix) == sparse_features
    torch.nn.init.normal_(method.discriminator.weight, generator=seeded(1))
    torch.nn.init.constant_(method.discriminator.bias, 0.3)
    loss = method.loss(prepared, 0, seeded(5))
    order = torch.randperm(30, generator=seeded(5))
    state = {name: value.detach() for name, value in method.state_dict().items()}
    adjacency, features = prepared.graph.adjacency.dense().double(), dense(prepared.graph.features)
    real, fake = (
        two_convolutions(state, "encoder", adjacency, features),
        two_convolutions(state, "encoder", adjacency, features[order]),
    )
    summary = 1 / (1 + torch.exp(-real.sum(dim=0) / 30))
    weight = state["discriminator.weight"]
    positive, negative = (
        torch.stack([row @ weight @ summary + 0.3 for row in rows]) for rows in (real, fake)
    )
    assert loss.item() == pytest.approx(naive_cross_entropy(positive, negative), rel=1e-10)
    torch.testing.assert_close(method.embed(prepared), real)


def test_gradients_match_central_differences_through_the_summary_too():
    graph = make_graph()
    method, prepared = in_double(*fresh(graph, hidden=6))
    torch.nn.init.normal_(method.discriminator.weight, generator=seeded(1))

    def value():
        return method.loss(prepared, 0, seeded(3))

    assert_gradients_match_central_differences(method, value)


def test_scores_start_as_close_to_zero_as_in_the_published_code():
    torch.manual_seed(0)
    weight = Bilinear(40, 50).weight.detach()
    reference = torch.nn.Bilinear(40, 50, 1)
    torch.nn.init.xavier_uniform_(reference.weight)
    bound = math.sqrt(6 / (40 * 50 + 50))
    assert 0.98 * bound < weight.abs().max() <= bound
    assert 0.98 * bound < reference.weight.abs().max() <= bound
