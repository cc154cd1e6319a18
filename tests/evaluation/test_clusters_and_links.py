import numpy as np
import pytest
from conftest import make_task
from sklearn.metrics import average_precision_score, roc_auc_score

from spgcl.errors import InputError
from spgcl.evaluation import cluster, hold_out_edges, link_scores
from spgcl.graph import Graph


def test_separated_classes_are_found_at_any_row_length():
    embeddings, labels = make_task(noise=0.05)
    lengths = np.random.default_rng(0).uniform(0.1, 100, (300, 1))
    assert cluster(lengths * embeddings, labels) == pytest.approx({"nmi": 100, "ari": 100})


def test_noise_agrees_with_nothing_and_the_seed_decides():
    embeddings = np.random.default_rng(1).normal(size=(300, 8))
    labels = make_task()[1]
    scores = cluster(embeddings, labels, seed=1)
    assert abs(scores["ari"]) < 5
    assert scores == cluster(embeddings, labels, seed=1)
    assert scores != cluster(embeddings, labels, seed=2)


def test_collapsed_embeddings_score_zero():
    labels = make_task()[1]
    assert cluster(np.ones((300, 4)), labels) == pytest.approx({"nmi": 0, "ari": 0})


def test_clustering_needs_two_classes():
    with pytest.raises(InputError, match="every label is 2"):
        cluster(np.ones((5, 2)), np.full(5, 2))


def random_graph(*, directed=False, num_nodes=60, num_edges=300):
    ends = np.random.default_rng(0).integers(0, num_nodes, (2, num_edges))
    return Graph.from_edges(*ends, np.eye(num_nodes, dtype=np.float32), directed=directed)


def pairs_of(graph):
    return set(zip(*(part.tolist() for part in graph.adjacency.nonzero()), strict=True))


@pytest.mark.parametrize("directed", [False, True])
def test_held_out_edges_leave_the_graph_and_non_edges_were_never_in_it(directed):
    graph = random_graph(directed=directed)
    rest, positive, negative = hold_out_edges(graph, 0.25, seed=5)
    assert positive.shape == negative.shape == (round(0.25 * graph.num_edges), 2)
    full, kept = pairs_of(graph), pairs_of(rest)
    held, absent = (set(map(tuple, pairs.tolist())) for pairs in (positive, negative))
    assert len(held) == len(positive)
    assert len(absent) == len(negative)
    both = held if directed else held | {(target, source) for source, target in held}
    assert kept == full - both
    assert held <= full
    assert not absent & full
    assert all(source != target for source, target in absent)


def test_the_same_seed_holds_out_the_same_edges():
    graph = random_graph()
    first, second, other = (hold_out_edges(graph, 0.1, seed)[1:] for seed in (0, 0, 1))
    assert all(np.array_equal(left, right) for left, right in zip(first, second, strict=True))
    assert not np.array_equal(first[0], other[0])


def test_every_edge_and_every_non_edge_is_drawn_about_equally_often():
    graph = Graph.from_edges(np.arange(5), (np.arange(5) + 1) % 5, np.eye(5))
    drawn = [hold_out_edges(graph, 0.2, seed)[1:] for seed in range(1000)]
    for side in (0, 1):
        _, counts = np.unique([pairs[side][0] @ (5, 1) for pairs in drawn], return_counts=True)
        assert len(counts) == 5
        assert counts.min() > 150


def test_all_non_edges_can_be_used_up_and_too_few_are_an_error():
    ring = Graph.from_edges(np.arange(5), (np.arange(5) + 1) % 5, np.eye(5))
    negative = hold_out_edges(ring, 0.8, seed=0)[2]
    assert len(np.unique(negative @ (5, 1))) == 4
    complete = Graph.from_edges(*np.triu_indices(5, 1), np.eye(5))
    with pytest.raises(InputError, match="only 0 node pairs are no edge"):
        hold_out_edges(complete, 0.2, seed=0)


@pytest.mark.parametrize(
    ("fraction", "message"), [(0, "is 0"), (1, "is 1"), (-0.1, "is -0.1"), (0.999, "leaves none")]
)
def test_a_fraction_that_leaves_nothing_is_refused(fraction, message):
    with pytest.raises(InputError, match=message):
        hold_out_edges(random_graph(), fraction, seed=0)


def test_link_scores_equal_a_naive_computation(monkeypatch):
    monkeypatch.setattr("spgcl.evaluation.links._CHUNK_ROWS", 7)
    embeddings = make_task()[0]
    positive, negative = np.random.default_rng(0).integers(0, 300, (2, 40, 2))
    rows = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    similarities = [float(rows[left] @ rows[right]) for left, right in [*positive, *negative]]
    truth = [1] * 40 + [0] * 40
    scores = link_scores(embeddings, positive, negative)
    assert scores["auc"] == pytest.approx(100 * roc_auc_score(truth, similarities))
    assert scores["average_precision"] == pytest.approx(100 * average_precision_score(truth, similarities))


def test_pairs_beyond_the_embeddings_are_refused():
    with pytest.raises(InputError, match="refer to node 3, but there are 3"):
        link_scores(np.ones((3, 2)), [[0, 3]], [[0, 1]])
    with pytest.raises(InputError, match="at least one row"):
        link_scores(np.ones((3, 2)), np.empty((0, 2), dtype=int), [[0, 1]])
