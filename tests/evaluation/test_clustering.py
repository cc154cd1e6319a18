import numpy as np
import pytest
import torch
from made_tasks import make_task
from sklearn.cluster import KMeans
from sklearn.metrics import (
    adjusted_rand_score,
    average_precision_score,
    normalized_mutual_info_score,
    roc_auc_score,
)

from spgcl.engine.similarity import squared_lengths
from spgcl.errors import InputError
from spgcl.evaluation import cluster, hold_out_edges, link_scores
from spgcl.evaluation.clustering import _moved, k_means
from spgcl.evaluation.metrics import adjusted_rand_index, normalised_mutual_information
from spgcl.graph import Graph


def objective(rows, found):
    """Squared distances of rows to the mean of their cluster, summed."""
    members = (rows[found == number] for number in np.unique(found))
    return sum(float(((part - part.mean(axis=0)) ** 2).sum()) for part in members)


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


@pytest.mark.parametrize("scale", [1e-35, 1e-20, 1e20, 1e36])
def test_long_and_short_rows_are_clustered_and_linked_as_others(scale):
    embeddings, labels = make_task(noise=0.05)
    uneven = embeddings * np.where(np.arange(300) % 2, scale, 1)[:, None]
    assert cluster(uneven, labels) == pytest.approx({"nmi": 100, "ari": 100})
    pairs = np.random.default_rng(0).integers(0, 300, (2, 40, 2))
    assert link_scores(uneven, *pairs) == pytest.approx(link_scores(embeddings, *pairs))


def test_nodes_without_a_label_are_clustered_but_not_compared():
    embeddings, labels = make_task(noise=0.05)
    labels[:100] = -1
    assert cluster(embeddings, labels) == pytest.approx({"nmi": 100, "ari": 100})


def test_numbers_of_classes_may_have_gaps():
    embeddings, labels = make_task(noise=0.05)
    assert cluster(embeddings, 10**12 * labels) == pytest.approx({"nmi": 100, "ari": 100})


def test_k_means_reaches_the_objective_of_scikit_learn(monkeypatch):
    # Rows come in several blocks.
    monkeypatch.setattr("spgcl.evaluation.clustering._BLOCK_ENTRIES", 1000)
    rows = make_task(num_classes=9, noise=1)[0]
    ours, theirs = [], []
    for seed in range(20):
        ours.append(objective(rows, k_means(torch.from_numpy(rows), 9, restarts=3, seed=seed).numpy()))
        theirs.append(objective(rows, KMeans(9, n_init=3, random_state=seed).fit(rows).labels_))
    assert min(ours) == pytest.approx(min(theirs), rel=1e-3)
    assert np.mean(ours) < 1.005 * np.mean(theirs)


def test_k_means_ends_where_rows_are_nearest_to_the_mean_of_their_cluster():
    rows = make_task(noise=1)[0]
    found = k_means(torch.from_numpy(rows), 4, restarts=1, seed=0).numpy()
    means = np.stack([rows[found == number].mean(axis=0) for number in range(4)])
    distances = ((rows[:, None] - means) ** 2).sum(axis=2)
    assert (distances.argmin(axis=1) == found).mean() > 0.98


def test_more_restarts_are_better_on_average():
    rows = torch.from_numpy(make_task(num_classes=9, noise=1)[0])
    several = [k_means(rows, 9, restarts=5, seed=seed) for seed in range(10)]
    single = [k_means(rows, 9, restarts=1, seed=seed) for seed in range(10)]
    means = [
        np.mean([objective(rows.numpy(), found.numpy()) for found in kind]) for kind in (several, single)
    ]
    assert means[0] < means[1]


def test_fewer_distinct_rows_than_clusters_are_told_apart():
    rows = torch.eye(3).repeat(20, 1)
    found = k_means(rows, 7, restarts=3, seed=0)
    assert objective(rows.numpy(), found.numpy()) == 0
    assert len(found.unique()) == 3


def test_an_empty_cluster_takes_the_farthest_row():
    rows = torch.tensor([[-1.0, 0.0], [-1.0, 1.0], [1.0, 0.0], [9.0, 0.0]])
    centres = torch.tensor([[[-1.0, 0.5], [2.0, 0.0], [-50.0, 0.0]]])
    moved = _moved(rows, squared_lengths(rows), centres)
    assert moved[0].tolist() == [[-1.0, 0.5], [1.0, 0.0], [9.0, 0.0]]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_cuda_clusters_as_well_as_the_cpu():
    rows = make_task(num_nodes=3000, num_classes=9, noise=1)[0]
    means = {}
    for device in ("cpu", "cuda"):
        given = torch.from_numpy(rows).to(device)
        found = [k_means(given, 9, restarts=3, seed=seed).cpu().numpy() for seed in range(5)]
        means[device] = np.mean([objective(rows, one) for one in found])
    assert means["cuda"] == pytest.approx(means["cpu"], rel=5e-3)
    embeddings, labels = make_task(noise=0.05)
    assert cluster(embeddings, labels, device="cuda") == pytest.approx({"nmi": 100, "ari": 100})
    assert cluster(np.ones((300, 4)), labels, device="cuda") == pytest.approx({"nmi": 0, "ari": 0})


@pytest.mark.parametrize(
    ("num_rows", "num_classes", "num_clusters"),
    [(200, 5, 5), (200, 2, 9), (50, 1, 4), (50, 4, 1), (50, 1, 1), (4, 4, 4), (1, 1, 1), (2, 2, 2)],
)
def test_agreement_equals_scikit_learn(num_rows, num_classes, num_clusters):
    generator = np.random.default_rng(num_rows)
    for _ in range(10):
        classes = generator.integers(0, num_classes, num_rows)
        clusters = np.where(generator.random(num_rows) < 0.3, classes % num_clusters, num_clusters - 1)
        for first, second in ((classes, clusters), (classes, classes), (classes, np.arange(num_rows))):
            given = torch.from_numpy(first), torch.from_numpy(second)
            expected = normalized_mutual_info_score(first, second), adjusted_rand_score(first, second)
            found = normalised_mutual_information(*given), adjusted_rand_index(*given)
            assert found == pytest.approx(expected, abs=1e-12)


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
    with pytest.raises(InputError, match="only 0 node pairs"):
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


def test_link_scores_of_equally_similar_pairs_equal_scikit_learns():
    embeddings = np.eye(3, dtype=np.float32)[np.random.default_rng(0).integers(0, 3, 60)]
    positive, negative = np.random.default_rng(1).integers(0, 60, (2, 25, 2))
    similarities = np.einsum("pd,pd->p", *(embeddings[ends] for ends in np.vstack([positive, negative]).T))
    truth = [1] * 25 + [0] * 25
    scores = link_scores(embeddings, positive, negative)
    assert set(similarities) == {0, 1}
    assert scores["auc"] == pytest.approx(100 * roc_auc_score(truth, similarities))
    assert scores["average_precision"] == pytest.approx(100 * average_precision_score(truth, similarities))


def test_a_pair_of_zero_vectors_is_not_alike():
    embeddings = np.array([[0.0, 0], [0, 0], [1, 0], [1, 1], [-1, 0]])
    found = link_scores(embeddings, [[2, 3]], [[0, 1]])
    assert found == {"auc": 100, "average_precision": 100}
    assert link_scores(embeddings, [[0, 1]], [[1, 2]])["auc"] == 50
    assert link_scores(embeddings, [[0, 1]], [[3, 4]])["auc"] == 100


def test_pairs_beyond_the_embeddings_are_refused():
    with pytest.raises(InputError, match="refer to node 3, but there are 3"):
        link_scores(np.ones((3, 2)), [[0, 3]], [[0, 1]])
    with pytest.raises(InputError, match="at least one row"):
        link_scores(np.ones((3, 2)), np.empty((0, 2), dtype=int), [[0, 1]])
