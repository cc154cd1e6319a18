"""GRACE's objective as loops, written from the equations of its paper, and a step as that objective."""

import math

import pytest
import torch
from graphs import seeded

from spgcl.methods.parts.augment import drop_edges, mask_features


def cosine(one, other):
    inner = sum(a * b for a, b in zip(one, other, strict=True))
    return inner / math.sqrt(sum(a * a for a in one) * sum(b * b for b in other))


def naive_pair(own, others, node, temperature):
    """-l(u_i, v_i) of Eq. 1: the positive, the others of the other view, the others of the own view."""
    positive = math.exp(cosine(own[node], others[node]) / temperature)
    between = sum(
        math.exp(cosine(own[node], others[other]) / temperature) for other in range(len(own)) if other != node
    )
    within = sum(
        math.exp(cosine(own[node], own[other]) / temperature) for other in range(len(own)) if other != node
    )
    return -math.log(positive / (positive + between + within))


def naive_loss(first, second, temperature):
    """-J of Eq. 2."""
    first, second = first.tolist(), second.tolist()
    pairs = [
        naive_pair(first, second, node, temperature) + naive_pair(second, first, node, temperature)
        for node in range(len(first))
    ]
    return sum(pairs) / (2 * len(pairs))


RATES = {
    "drop_edges_first": 0.3,
    "drop_edges_second": 0.5,
    "mask_features_first": 0.2,
    "mask_features_second": 0.4,
}


def assert_step_is_objective(method, prepared, scaled=lambda *rates: rates):
    """A step of a method with these rates, after scaling, and temperature 0.3 is the loss of two views."""
    generator, projections = seeded(), []
    for which in ("first", "second"):
        edges, columns = scaled(RATES[f"drop_edges_{which}"], RATES[f"mask_features_{which}"])
        view = mask_features(drop_edges(prepared.graph, edges, generator), columns, generator)
        projections.append(method.head(method.encoder(view, None, None)))
    assert not torch.allclose(*projections)
    loss = method.loss(prepared, 0, seeded())
    assert loss.item() == pytest.approx(naive_loss(*projections, 0.3), rel=1e-10)
