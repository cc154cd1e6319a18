import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from differences import assert_gradients_match_central_differences
from scipy import sparse

from spgcl.engine.tensors import SparseMatrix
from spgcl.evaluation import probe
from spgcl.graph import Graph
from spgcl.methods.dgi import DGI
from spgcl.methods.parts.discriminators import Bilinear, noise_contrastive
from spgcl.training.loop import train

CPU = torch.device("cpu")


def make_graph(*, sparse_features=False, directed=False):
    """Thirty nodes with features of uneven size, the last one isolated."""
    generator = np.random.default_rng(0)
    sources, targets = generator.integers(0, 29, (2, 60))
    features = generator.normal(size=(30, 12)) * generator.uniform(0.2, 5, (30, 1))
    if sparse_features:
        features = sparse.csr_array(features * (generator.random(features.shape) < 0.07))
    return Graph.from_edges(sources, targets, features, directed=directed)


def make_method(graph, *, seed=0, **settings):
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        # The oracles have no batch norm, which is tested with the encoder.
        return DGI(graph.num_features, **{"batch_norm": "none", **settings})


def in_double(method, prepared):
    features = prepared.graph.features
    if isinstance(features, SparseMatrix):
        features = replace(features, values=features.values.double())
    else:
        features = features.double()
    prepared.graph = replace(prepared.graph, features=features)
    return method.double(), prepared


def naive_cross_entropy(positive, negative):
    total = 0.0
    for score in positive.tolist():
        total -= math.log(1 / (1 + math.exp(-score)))
    for score in negative.tolist():
        total -= math.log(1 - 1 / (1 + math.exp(-score)))
    return total / (len(positive) + len(negative))


def test_the_objective_is_the_equation():
    generator = torch.Generator().manual_seed(0)
    positive = torch.randn(7, generator=generator, dtype=torch.float64) * 3
    negative = torch.randn(5, generator=generator, dtype=torch.float64) * 3
    expected = naive_cross_entropy(positive, negative)
    assert noise_contrastive(positive, negative).item() == pytest.approx(expected, rel=1e-12)


def test_scores_that_are_sure_stay_finite():
    sure = torch.tensor([1e4])
    assert noise_contrastive(sure, -sure).item() == 0
    assert noise_contrastive(-sure, sure).item() == pytest.approx(1e4)


def encode(state, adjacency, features):
    """Two convolutions with one PReLU, from the equations."""
    hidden = features
    for layer in range(2):
        hidden = adjacency @ hidden @ state[f"encoder.convolutions.{layer}.weight"]
        hidden = hidden + state[f"encoder.convolutions.{layer}.bias"]
        hidden = torch.where(hidden > 0, hidden, state["encoder.activation.weight"] * hidden)
    return hidden


def dense(matrix):
    return matrix.dense() if isinstance(matrix, SparseMatrix) else matrix


@pytest.mark.parametrize("sparse_features", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_a_step_tells_nodes_from_shuffled_ones(directed, sparse_features):
    graph = make_graph(sparse_features=sparse_features, directed=directed)
    method = make_method(graph, hidden=8)
    method, prepared = in_double(method, method.prepare(graph, CPU))
    assert isinstance(prepared.graph.features, SparseMatrix) == sparse_features
    torch.nn.init.normal_(method.discriminator.weight, generator=torch.Generator().manual_seed(1))
    torch.nn.init.constant_(method.discriminator.bias, 0.3)
    loss = method.loss(prepared, 0, torch.Generator().manual_seed(5))
    order = torch.randperm(30, generator=torch.Generator().manual_seed(5))
    state = {name: value.detach() for name, value in method.state_dict().items()}
    adjacency, features = prepared.graph.adjacency.dense().double(), dense(prepared.graph.features)
    real, fake = encode(state, adjacency, features), encode(state, adjacency, features[order])
    summary = 1 / (1 + torch.exp(-real.sum(dim=0) / 30))
    weight = state["discriminator.weight"]
    positive, negative = (
        torch.stack([row @ weight @ summary + 0.3 for row in rows]) for rows in (real, fake)
    )
    assert loss.item() == pytest.approx(naive_cross_entropy(positive, negative), rel=1e-10)


def test_gradients_match_central_differences_through_the_summary_too():
    graph = make_graph()
    method = make_method(graph, hidden=6)
    method, prepared = in_double(method, method.prepare(graph, CPU))
    torch.nn.init.normal_(method.discriminator.weight, generator=torch.Generator().manual_seed(1))

    def value():
        return method.loss(prepared, 0, torch.Generator().manual_seed(3))

    assert_gradients_match_central_differences(method, value)


def test_scores_start_as_close_to_zero_as_in_the_published_code():
    torch.manual_seed(0)
    weight = Bilinear(40, 50).weight.detach()
    reference = torch.nn.Bilinear(40, 50, 1)
    torch.nn.init.xavier_uniform_(reference.weight)
    bound = math.sqrt(6 / (40 * 50 + 50))
    assert 0.98 * bound < weight.abs().max() <= bound
    assert 0.98 * bound < reference.weight.abs().max() <= bound


def test_features_are_divided_by_their_sums_where_asked():
    graph = make_graph()
    features = make_method(graph).prepare(graph, CPU).graph.features
    torch.testing.assert_close(features.abs().sum(dim=1), torch.ones(30))
    plain = make_method(graph, normalise_features=False).prepare(graph, CPU).graph.features
    torch.testing.assert_close(plain, torch.from_numpy(np.array(graph.features)))


def test_the_embedding_is_the_output_of_the_encoder():
    graph = make_graph()
    method = make_method(graph, hidden=8)
    method, prepared = in_double(method, method.prepare(graph, CPU))
    state = method.state_dict()
    expected = encode(state, prepared.graph.adjacency.dense().double(), prepared.graph.features)
    torch.testing.assert_close(method.embed(prepared), expected)


# A narrow encoder leaves random projections little room: a wide one is hard to beat untrained. Columns are
# standardised, as training also makes embeddings larger, which a probe of fixed rate takes for better ones.
def test_chameleon_trained_briefly_beats_its_untrained_encoder(chameleon):
    method = make_method(chameleon.graph, hidden=8, steps=100, learning_rate=0.01)
    prepared = method.prepare(chameleon.graph, CPU)

    def accuracy():
        vectors = method.embed(prepared)
        vectors = ((vectors - vectors.mean(dim=0)) / vectors.std(dim=0)).numpy()
        return probe(vectors, chameleon.labels, chameleon.splits, epochs=200, learning_rate=0.01).mean

    untrained = accuracy()
    train(method, prepared, seed=0)
    assert accuracy() > untrained + 2
