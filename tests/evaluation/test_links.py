import numpy as np
import pytest
from graphs import make_graph
from made_tasks import make_task
from sklearn.metrics import average_precision_score, roc_auc_score

from spgcl.errors import InputError
from spgcl.evaluation import hold_out_edges, link_scores
from spgcl.graph import Graph


def pairs_of(graph):
    return set(zip(*(part.tolist() for part in graph.adjacency.nonzero()), strict=True))


@pytest.mark.parametrize("directed", [False, True])
def test_held_out_edges_leave_the_graph_and_non_edges_were_never_in_it(directed):
    graph = make_graph(60, num_edges=300, directed=directed)
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
    graph = make_graph(60, num_edges=300)
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
    with pytest.raises(InputError, match="only 0"):
        hold_out_edges(complete, 0.2, seed=0)


@pytest.mark.parametrize(
    ("fraction", "named"), [(0, "is 0"), (1, "is 1"), (-0.1, "is -0.1"), (0.999, "0.999 of")]
)
def test_a_fraction_that_leaves_nothing_is_refused(fraction, named):
    with pytest.raises(InputError, match=named):
        hold_out_edges(make_graph(60, num_edges=300), fraction, seed=0)


@pytest.mark.parametrize("tied", [False, True])
def test_link_scores_equal_scikit_learns(tied, monkeypatch):
    monkeypatch.setattr("spgcl.evaluation.links._CHUNK_ROWS", 7)
    embeddings = np.eye(3, dtype=np.float32)[np.arange(300) % 3] if tied else make_task()[0]
    positive, negative = np.random.default_rng(0).integers(0, 300, (2, 40, 2))
    rows = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    similarities = [float(rows[left] @ rows[right]) for left, right in [*positive, *negative]]
    assert (set(similarities) == {0, 1}) == tied
    truth = [1] * 40 + [0] * 40
    assert link_scores(embeddings, positive, negative) == {
        "auc": pytest.approx(100 * roc_auc_score(truth, similarities)),
        "average_precision": pytest.approx(100 * average_precision_score(truth, similarities)),
    }


def test_a_pair_of_zero_vectors_is_not_alike():
    embeddings = np.array([[0.0, 0], [0, 0], [1, 0], [1, 1], [-1, 0]])
    found = link_scores(embeddings, [[2, 3]], [[0, 1]])
    assert found == {"auc": 100, "average_precision": 100}
    assert link_scores(embeddings, [[0, 1]], [[1, 2]])["auc"] == 50
    assert link_scores(embeddings, [[0, 1]], [[3, 4]])["auc"] == 100


def test_pairs_beyond_the_embeddings_are_refused():
    with pytest.raises(InputError, match="node 3"):
        link_scores(np.ones((3, 2)), [[0, 3]], [[0, 1]])
    with pytest.raises(InputError, match=r"\(0, 2\)"):
        link_scores(np.ones((3, 2)), np.empty((0, 2), dtype=int), [[0, 1]])
