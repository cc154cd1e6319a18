from functools import partial

import graphs
import made_methods
import numpy as np
import pytest
import torch
from contrast_oracle import naive_loss
from graphs import CPU, seeded
from made_methods import in_double

from spgcl.engine.tensors import GraphTensors
from spgcl.graph import Graph
from spgcl.methods.graphcl import KINDS, GraphCL, view_of
from spgcl.methods.parts import augment

make_graph = partial(graphs.make_graph, 40, 10, num_edges=80)
fresh = partial(made_methods.fresh, GraphCL)


def same(view, other):
    return (
        torch.equal(view.adjacency.rows, other.adjacency.rows)
        and torch.equal(view.adjacency.columns, other.adjacency.columns)
        and torch.equal(view.features, other.features)
    )


def test_every_kind_of_view_is_its_augmentation():
    graph = GraphTensors.of(make_graph(), CPU)
    generator = seeded()
    perturbed = augment.add_edges(augment.drop_edges(graph, 0.15, generator), 0.15, generator)
    expected = {
        "nodes": augment.keep_nodes(graph, augment.random_nodes(graph, 0.7, seeded())),
        "edges": perturbed,
        "attributes": augment.drop_features(graph, 0.3, seeded()),
        "subgraph": augment.keep_nodes(graph, augment.walked_nodes(graph, 0.7, seeded())),
    }
    assert tuple(expected) == KINDS
    for kind, other in expected.items():
        view, kept = view_of(graph, kind, 0.3, seeded())
        assert same(view, other) and not same(view, graph)
        gone = (view.features == 0).all(dim=1)
        assert torch.equal(kept, ~gone) and kept.all() == (kind in ("edges", "attributes"))


def test_any_view_is_each_kind_as_often():
    graph = GraphTensors.of(make_graph(), CPU)
    generator, counts = seeded(), dict.fromkeys(KINDS, 0)
    for seed in range(400):
        drawn = KINDS[int(torch.randint(4, (), generator=seeded(seed)))]
        generator = seeded(seed)
        view, _ = view_of(graph, "any", 0.3, seeded(seed))
        torch.randint(4, (), generator=generator)
        assert same(view, view_of(graph, drawn, 0.3, generator)[0])
        counts[drawn] += 1
    assert min(counts.values()) > 60 and max(counts.values()) < 140


@pytest.mark.parametrize("kinds", [("nodes", "subgraph"), ("edges", "attributes"), ("any", "nodes")])
def test_a_step_is_the_objective_over_the_nodes_that_both_views_hold(kinds):
    first, second = kinds
    settings = {"first_view": first, "second_view": second, "rate": 0.4, "temperature": 0.3}
    method, prepared = in_double(*fresh(make_graph(), hidden=6, projection=5, **settings))
    generator = seeded()
    views = [view_of(prepared.graph, kind, 0.4, generator) for kind in kinds]
    shared = [node for node in range(40) if views[0][1][node] and views[1][1][node]]
    assert (len(shared) == 40) == (first == "edges")
    projections = [method.head(method.encoder(view, None, None)[shared]) for view, _ in views]
    loss = method.loss(prepared, 0, seeded())
    assert loss.item() == pytest.approx(naive_loss(*projections, 0.3), rel=1e-10)


def test_views_without_a_common_node_still_give_a_loss():
    pair = Graph.from_edges(np.array([0]), np.array([1]), np.eye(2))
    method, prepared = fresh(pair, first_view="nodes", second_view="nodes", rate=0.9, hidden=4)
    losses = torch.stack([method.loss(prepared, 0, seeded(seed)) for seed in range(10)])
    assert losses.isfinite().all()
