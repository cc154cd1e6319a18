import numpy as np
import pytest
import torch
from made_tasks import make_task
from sklearn.cluster import KMeans

from spgcl.engine.similarity import squared_lengths
from spgcl.errors import InputError
from spgcl.evaluation import cluster, link_scores
from spgcl.evaluation.clustering import _moved, k_means


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


def test_clustering_needs_two_classes():
    with pytest.raises(InputError, match="every label is 2"):
        cluster(np.ones((5, 2)), np.full(5, 2))
