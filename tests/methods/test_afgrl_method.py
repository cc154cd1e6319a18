from functools import partial

import graphs
import made_methods
import pytest
import torch
from contrast_oracle import cosine
from graphs import seeded
from made_methods import gradients_are_right, in_double, trained_bytes
from torch.autograd import gradcheck
from torch.nn.functional import normalize

from spgcl.engine.patterns import Pattern
from spgcl.engine.tensors import SparseMatrix
from spgcl.methods import afgrl
from spgcl.methods.afgrl import (
    AFGRL,
    k_means,
    marked_means,
    nearest_nodes,
    neighbour_loss,
    partner_sums,
    shared_clusters,
    sorted_means,
)

make_graph = partial(graphs.make_graph, 40, 9)
TINY = {
    "hidden": 8,
    "predictor_width": 7,
    "neighbours": 5,
    "clusters": 4,
    "clusterings": 2,
    "cluster_steps": 3,
    "steps": 6,
    "learning_rate": 0.05,
}
fresh = partial(made_methods.fresh, AFGRL, make_graph(), **TINY)


def moved_in_double():
    """In double precision, with the target moved away from the online encoder, of which it is a copy."""
    method, prepared = in_double(*fresh())
    for weight in method.target.parameters():
        weight.add_(torch.randn(weight.shape, generator=seeded(), dtype=weight.dtype) / 2)
    return method, prepared


def distance(one, other):
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def naive_nearest(rows, others, node, count):
    order = sorted(
        (other for other in range(len(rows)) if other != node),
        key=lambda other: -cosine(rows[node], others[other]),
    )
    return [node, *order[: count - 1]]


def naive_k_means(rows, centres, iterations):
    def assign():
        return [min(range(len(centres)), key=lambda centre: distance(row, centres[centre])) for row in rows]

    for _ in range(iterations):
        labels = assign()
        for cluster in range(len(centres)):
            own = [row for row, label in zip(rows, labels, strict=True) if label == cluster]
            if own:
                centres[cluster] = [sum(column) / len(own) for column in zip(*own, strict=True)]
    return assign()


def naive_loss(predictions, targets, pairs):
    total = 0.0
    for one, other in pairs:
        total += 2 - 2 * cosine(predictions[one], targets[other])
        total += 2 - 2 * cosine(predictions[other], targets[one])
    return total / len(pairs)


def as_pairs(matrix):
    return list(zip(matrix.row_of_entry.tolist(), matrix.columns.tolist(), strict=True))


@pytest.mark.parametrize("rows", [1, 7, 40])
def test_nearest_nodes_are_those_of_naive_loops_in_any_blocks(rows, monkeypatch):
    monkeypatch.setattr(afgrl, "BLOCK_BYTES", rows * 40 * 8)
    vectors, others = normalize(torch.randn(2, 40, 6, generator=seeded(), dtype=torch.float64), dim=2)
    found = nearest_nodes(vectors, others, 5)
    for node in range(40):
        assert found[node].tolist() == naive_nearest(vectors.tolist(), others.tolist(), node, 5)


def test_no_more_nodes_are_near_than_there_are():
    vectors = normalize(torch.randn(3, 4, generator=seeded()), dim=1)
    assert nearest_nodes(vectors, vectors, 9).shape == (3, 3)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_cuda_finds_the_same_neighbours_and_clusters():
    """Rows of zeros, which products get there, are neither near nor in a cluster."""
    vectors, others = -normalize(torch.rand(2, 300, 6, generator=seeded(), dtype=torch.float64), dim=2)
    others *= -1
    centres = vectors[torch.arange(8).view(2, 4)]
    near, clusters = nearest_nodes(vectors, others, 5), k_means(vectors, centres, 4)
    assert torch.equal(nearest_nodes(vectors.cuda(), others.cuda(), 5).cpu(), near)
    assert torch.equal(k_means(vectors.cuda(), centres.cuda(), 4).cpu(), clusters)


@pytest.mark.parametrize("rows", [1, 7, 40])
@pytest.mark.parametrize("iterations", [0, 1, 4])
def test_k_means_is_that_of_naive_loops_in_any_blocks(rows, iterations, monkeypatch):
    monkeypatch.setattr(afgrl, "BLOCK_BYTES", rows * 8 * 8)
    vectors = torch.randn(40, 3, generator=seeded(), dtype=torch.float64)
    centres = vectors[torch.tensor([[0, 1, 2, 3], [9, 8, 7, 6]])]
    found = k_means(vectors, centres, iterations)
    for clustering, starts in zip(found.tolist(), centres.tolist(), strict=True):
        assert clustering == naive_k_means(vectors.tolist(), starts, iterations)


def test_a_cluster_without_nodes_stays_where_it_is():
    vectors = torch.tensor([[0.0, 0.0], [0.0, 1.0], [5.0, 5.0]])
    centres = torch.tensor([[[0.0, 0.0], [90.0, 90.0], [5.0, 5.0]]])
    assert k_means(vectors, centres, 3).tolist() == [[0, 0, 2]]


def test_means_by_marks_are_those_by_sorting():
    vectors = torch.randn(40, 3, generator=seeded(), dtype=torch.float64)
    clusters = torch.randint(4, (2, 40), generator=seeded())
    clusters[clusters == 2] = 1
    centres = torch.randn(2, 4, 3, generator=seeded(), dtype=torch.float64)
    marked = marked_means(vectors, clusters, centres)
    torch.testing.assert_close(marked, sorted_means(vectors, clusters, centres))
    assert torch.equal(marked[:, 2], centres[:, 2])


def test_vectors_of_partners_add_up_to_both_products():
    vectors = torch.randn(6, 4, generator=seeded(), dtype=torch.float64)
    columns = torch.randint(6, (18,), generator=seeded())
    values = (torch.rand(18, generator=seeded()) < 0.5).double()
    pairs = SparseMatrix(Pattern(torch.arange(0, 19, 3), columns, 6), values)
    expected = torch.zeros(6, 4, dtype=torch.float64)
    for entry, (node, value) in enumerate(zip(columns.tolist(), values.tolist(), strict=True)):
        expected[entry // 3] += value * vectors[node]
        expected[node] += value * vectors[entry // 3]
    assert 0 < values.sum() < 18
    torch.testing.assert_close(partner_sums(vectors, pairs), expected)


def test_clusters_are_shared_when_any_clustering_says_so():
    clusters = torch.tensor([[0, 0, 1], [2, 1, 2]])
    chosen = torch.tensor([[0, 1, 2], [1, 0, 2], [2, 0, 1]])
    expected = [[True, True, True], [True, True, False], [True, True, False]]
    assert shared_clusters(clusters, chosen).tolist() == expected


def test_the_loss_over_pairs_is_that_of_naive_loops():
    predictions, targets = torch.randn(2, 6, 4, generator=seeded(), dtype=torch.float64)
    pointers, columns = torch.tensor([0, 2, 2, 3, 5, 6, 7]), torch.tensor([0, 3, 2, 5, 0, 4, 5])
    pairs = SparseMatrix(Pattern(pointers, columns, 6), torch.ones(7))
    expected = naive_loss(predictions.tolist(), targets.tolist(), as_pairs(pairs))
    assert neighbour_loss(predictions, targets, pairs).item() == pytest.approx(expected, rel=1e-12)
    predictions.requires_grad_()
    assert gradcheck(lambda rows: neighbour_loss(rows, targets, pairs), (predictions,))


def test_the_loss_of_a_step_is_that_of_naive_loops():
    method, prepared = moved_in_double()
    embeddings = method.online(prepared.graph, None, None)
    targets = method.target(prepared.graph, None, None)
    rows, known = normalize(embeddings, dim=1).tolist(), normalize(targets, dim=1).tolist()
    starts = torch.rand(2, 40, generator=seeded()).topk(4, dim=1).indices.tolist()
    clusterings = [naive_k_means(known, [known[node] for node in nodes], 3) for nodes in starts]
    edges = make_graph().adjacency.toarray() > 0
    pairs = [
        (node, other)
        for node in range(40)
        for other in naive_nearest(rows, known, node, 5)
        if node == other or edges[node, other] or any(labels[node] == labels[other] for labels in clusterings)
    ]
    with torch.no_grad():
        found = method.positives(embeddings, targets, prepared.keys, seeded())
    assert sorted(as_pairs(found)) == sorted(pairs) and 40 < len(pairs) < 200
    expected = naive_loss(method.predictor(embeddings).tolist(), targets.tolist(), pairs)
    assert method.loss(prepared, 0, seeded()).item() == pytest.approx(expected, rel=1e-9)


def test_gradients_match_central_differences():
    assert gradients_are_right(*moved_in_double())


def test_the_same_seed_gives_the_same_bytes_also_with_more_clusters_than_nodes():
    assert trained_bytes(*fresh(clusters=100)) == trained_bytes(*fresh(clusters=100))
