import re
from dataclasses import replace
from functools import partial

import graphs
import made_methods
import numpy as np
import pytest
import torch
from graphs import CPU, seeded
from made_methods import doubled, gradients_are_right, in_double
from scipy import sparse

from spgcl.engine.tensors import SparseMatrix
from spgcl.methods.parts.augment import drop_edges, mask_features
from spgcl.methods.parts.schedules import cosine_schedule
from spgcl.methods.selene import SELENE, decorrelation_loss, walk_encodings
from spgcl.training.loop import train

TINY = {"hidden": 8, "projection_width": 5, "seeds": 20, "steps": 5, "learning_rate": 0.05}
make_graph = partial(graphs.make_graph, 50, 9, num_edges=120, uneven=True)
fresh = partial(made_methods.fresh, SELENE, make_graph(), **TINY)


def both_in_double(method, prepared):
    prepared.structure = doubled(prepared.structure)
    return in_double(method, prepared)


def naive_decorrelation(first, second):
    nodes, width = len(first), len(first[0])
    total = 0.0
    for i in range(width):
        for j in range(width):
            a, b = [row[i] for row in first], [row[j] for row in second]
            mean_a, mean_b = sum(a) / nodes, sum(b) / nodes
            both = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True))
            spread = sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b)
            correlation = both / spread**0.5
            total += (1 - correlation) ** 2 if i == j else correlation**2 / width
    return total


def test_the_decorrelation_is_that_of_naive_loops():
    first, second = torch.randn(2, 13, 4, generator=seeded(), dtype=torch.float64)
    second = second + first
    expected = naive_decorrelation(first.tolist(), second.tolist())
    assert decorrelation_loss(first, second).item() == pytest.approx(expected, rel=1e-9)


def test_equal_views_of_uncorrelated_columns_cost_nothing():
    columns = torch.tensor([[1.0, 1], [1, -1], [-1, 1], [-1, -1]], dtype=torch.float64) * 3 + 7
    assert decorrelation_loss(columns, columns).item() == pytest.approx(0, abs=1e-9)
    assert decorrelation_loss(columns, columns.flip(1)).item() == pytest.approx(2 + 2 / 2)


def test_a_constant_column_has_a_finite_gradient():
    columns = torch.randn(10, 3, generator=seeded())
    columns[:, 1] = 2
    columns.requires_grad_()
    decorrelation_loss(columns, columns * 2).backward()
    assert columns.grad.isfinite().all()


@pytest.mark.parametrize("directed", [False, True])
def test_walk_encodings_are_expected_visits_of_walks_from_every_node(directed):
    graph = make_graph(directed=directed)
    dense = graph.adjacency.toarray().astype(np.float64)
    visits = np.zeros((50, 4))
    for start in range(50):
        here = np.eye(50)[start]
        for step in range(4):
            visits[:, step] += here
            onward = np.zeros(50)
            for node in range(50):
                neighbours = np.flatnonzero(dense[node])
                if len(neighbours):
                    onward[neighbours] += here[node] / len(neighbours)
            here = onward
    np.testing.assert_allclose(walk_encodings(graph, 3), np.log1p(visits), rtol=1e-5)


def test_the_structure_channel_reads_walks_and_if_asked_attributes():
    graph = make_graph()
    _, prepared = fresh()
    expected = np.hstack([walk_encodings(graph, 3), graph.features])
    np.testing.assert_array_equal(prepared.structure.features.numpy(), expected)
    assert prepared.graph.adjacency is prepared.structure.adjacency
    few = graph.with_features(sparse.random_array((50, 90), density=0.02, rng=1, format="csr"))
    torch.manual_seed(0)
    prepared = SELENE(90, **TINY).prepare(few, CPU)
    assert isinstance(prepared.structure.features, SparseMatrix)
    expected = np.hstack([walk_encodings(graph, 3), few.features.toarray()])
    np.testing.assert_array_equal(prepared.structure.features.dense().numpy(), expected)
    _, prepared = fresh(structure_inputs="walks", walk_length=2)
    np.testing.assert_array_equal(prepared.structure.features.numpy(), walk_encodings(graph, 2))


def test_without_noise_and_with_all_nodes_the_loss_is_that_of_its_three_parts():
    method, prepared = fresh(drop_edges=0.0, mask_features=0.0, seeds=50)
    attributes = method.attribute_head(method.attribute_encoder(prepared.graph, None, None))
    structure = method.structure_head(method.structure_encoder(prepared.structure, None, None))
    squares = (method.decoder(attributes) - prepared.graph.features).square().detach()
    expected = sum(squares.reshape(-1).tolist()) / squares.numel()
    for channel in (attributes, structure):
        rows = channel.detach().double().tolist()
        expected += naive_decorrelation(rows, rows)
    assert method.loss(prepared, 0, seeded()).item() == pytest.approx(expected, rel=1e-4)


def test_a_step_compares_two_views_in_each_channel_and_rebuilds_clean_attributes():
    method, prepared = both_in_double(*fresh(drop_edges=0.3, mask_features=0.5))
    loss = method.loss(prepared, 0, seeded())
    generator = seeded()
    chosen = torch.randperm(50, generator=generator)[:20].sort().values
    views = []
    for _ in range(2):
        view = mask_features(drop_edges(prepared.structure, 0.3, generator), 0.5, generator)
        views.append(method.structure_head(method.structure_encoder(view, chosen, None)))
    rows = replace(prepared.graph, features=prepared.graph.features[chosen])
    masked = [mask_features(rows, 0.5, generator) for _ in range(2)]
    own = [method.attribute_head(method.attribute_encoder(view, None, None)) for view in masked]
    clean = method.attribute_head(method.attribute_encoder(rows, None, None))
    squares = (method.decoder(clean) - rows.features).square().reshape(-1).tolist()
    expected = sum(squares) / len(squares)
    for first, second in (own, views):
        expected += naive_decorrelation(first.tolist(), second.tolist())
    assert loss.item() == pytest.approx(expected, rel=1e-9)


def test_gradients_match_central_differences():
    assert gradients_are_right(*both_in_double(*fresh()))


def test_every_weight_is_trained():
    method, prepared = fresh()
    method.loss(prepared, 0, seeded()).backward()
    untrained = [name for name, weight in method.named_parameters() if weight.grad is None]
    # Batch norm, which follows, takes these away.
    assert all(re.search(r"convolutions\.\d\.bias", name) for name in untrained)


def test_the_embedding_weighs_and_joins_the_channels_in_evaluation_mode():
    method, prepared = fresh(attribute_share=0.25)
    train(method, prepared, seed=0)
    embeddings = method.embed(prepared)
    assert embeddings.shape == (50, 16) and embeddings.dtype == torch.float32
    assert not embeddings.requires_grad and method.structure_encoder.training
    method.eval()
    attributes = method.attribute_encoder(prepared.graph, None, None)
    structure = method.structure_encoder(prepared.structure, None, None)
    expected = torch.cat([attributes / 4, structure * 3 / 4], dim=1).detach()
    torch.testing.assert_close(embeddings, expected)


def test_the_learning_rate_rises_and_falls_along_its_schedule():
    method, _ = fresh(warm_up=0.4)
    rates = [method.learning_rate_at(step) for step in range(5)]
    assert rates == pytest.approx([0.05 * cosine_schedule(step, 5, 2) for step in range(5)])
