import numpy as np
import pytest
import torch
from contrast_oracle import cosine
from graphs import CPU, make_graph, seeded

from spgcl.evaluation.health import class_centre_distance, observer, selected_homophily
from spgcl.methods import create


def make_vectors(num_nodes=40, width=5, num_classes=3, seed=0):
    generator = seeded(seed)
    vectors = torch.randn(num_nodes, width, generator=generator)
    return vectors, torch.randint(num_classes, (num_nodes,), generator=generator)


def naive_distance(vectors, labels):
    rows, classes = vectors.tolist(), labels.tolist()
    centres = {}
    for value in set(classes):
        members = [row for row, own in zip(rows, classes, strict=True) if own == value]
        centres[value] = [sum(column) / len(members) for column in zip(*members, strict=True)]
    return sum(1 - cosine(row, centres[own]) for row, own in zip(rows, classes, strict=True)) / len(rows)


def naive_homophily(vectors, labels, positives):
    rows, classes = vectors.tolist(), labels.tolist()
    same = []
    for anchor, row in enumerate(rows):
        others = [node for node in range(len(rows)) if node != anchor]
        nearest = sorted(others, key=lambda node: -cosine(row, rows[node]))[:positives]
        same += [classes[node] == classes[anchor] for node in nearest]
    return sum(same) / len(same)


def test_the_distance_to_class_centres_is_that_of_naive_loops():
    vectors, labels = make_vectors()
    assert class_centre_distance(vectors, labels) == pytest.approx(naive_distance(vectors, labels), abs=1e-6)
    # A class without nodes has no centre and changes nothing.
    labels = labels * 2
    assert class_centre_distance(vectors, labels) == pytest.approx(naive_distance(vectors, labels), abs=1e-6)


def test_nodes_at_their_centre_have_no_distance():
    labels = torch.tensor([0, 1, 0, 1])
    assert class_centre_distance(torch.eye(2)[labels], labels) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("positives", [1, 5, 39])
def test_selected_homophily_is_that_of_naive_loops(positives):
    vectors, labels = make_vectors()
    expected = naive_homophily(vectors, labels, positives)
    assert 0 < expected < 1
    assert selected_homophily(vectors, labels, positives) == pytest.approx(expected, abs=1e-6)


def test_more_positives_than_nodes_are_all_other_nodes():
    vectors, labels = make_vectors(num_nodes=6)
    expected = naive_homophily(vectors, labels, 5)
    assert selected_homophily(vectors, labels, 50) == pytest.approx(expected, abs=1e-6)


def test_the_observer_adds_curves_about_classes_where_there_are_labels():
    graph = make_graph(30, 4, num_edges=60)
    labels = np.random.default_rng(0).integers(0, 3, 30)
    settings = {"hidden": 6, "seeds": 5, "hops": 1, "pool_size": 12, "positives": 2, "negatives": 3}
    method = create("spgcl", 4, seed=0, settings=settings)
    prepared = method.prepare(graph, CPU)
    prepared.watching = True
    method.loss(prepared, 0, seeded(0))
    own = method.observe(prepared)
    curves = {"weight_norm_1", "weight_norm_2", "node_cover_ratio", "overlapped_selection_ratio"}
    assert set(own) == curves
    assert observer(None)(method, prepared) == own
    seen = observer(labels, positives=2)(method, prepared)
    classes = torch.from_numpy(labels)
    assert seen == own | {
        "class_centre_distance": pytest.approx(naive_distance(method.embed(prepared), classes), abs=1e-5),
        "transformed_homophily": pytest.approx(naive_homophily(method.space(prepared), classes, 2), abs=1e-5),
    }
