import numpy as np
import pytest
import torch
from made_tasks import make_splits, make_task
from sklearn.metrics import roc_auc_score

from spgcl.errors import InputError
from spgcl.evaluation import knn, most_similar


def cosine(left, right):
    return float(left @ right / (np.linalg.norm(left) * np.linalg.norm(right)))


def naive_votes(embeddings, labels, train, node, neighbours, num_classes):
    """Votes and summed similarities of each class among the nearest training nodes."""
    near = sorted(((cosine(embeddings[node], embeddings[other]), other) for other in train), reverse=True)
    votes = [(0, 0.0)] * num_classes
    for similarity, other in near[:neighbours]:
        count, total = votes[labels[other]]
        votes[labels[other]] = (count + 1, total + similarity)
    return votes


@pytest.mark.parametrize("neighbours", [1, 4, 10, 1000])
def test_knn_equals_a_naive_vote(uneven_splits, neighbours, monkeypatch):
    monkeypatch.setattr("spgcl.engine.similarity._SIMILARITY_ENTRIES", 1000)
    embeddings, labels = make_task(noise=3)
    scores = knn(embeddings, labels, uneven_splits, neighbours=neighbours)
    for split, score in enumerate(scores.splits):
        train = np.flatnonzero(uneven_splits.train[split])
        for part in ("validation", "test"):
            nodes = np.flatnonzero(getattr(uneven_splits, part)[split])
            right = 0
            for node in nodes:
                votes = naive_votes(embeddings, labels, train, node, neighbours, 4)
                right += votes.index(max(votes)) == labels[node]
            assert getattr(score, part) == pytest.approx(100 * right / len(nodes))


def test_knn_ranks_by_votes_for_roc_auc():
    embeddings, labels = make_task(num_classes=2, noise=3)
    splits = make_splits(300, [(60, 50)])
    found = knn(embeddings, labels, splits, neighbours=1, metric="roc_auc").mean
    train, test = np.flatnonzero(splits.train[0]), np.flatnonzero(splits.test[0])
    margins = []
    for node in test:
        (zero, zero_sum), (one, one_sum) = naive_votes(embeddings, labels, train, node, 1, 2)
        margins.append(one - zero + (one_sum - zero_sum) / 3)
    assert found == pytest.approx(100 * roc_auc_score(labels[test], margins))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize(("metric", "num_classes"), [("accuracy", 4), ("roc_auc", 2)])
def test_cuda_votes_as_the_cpu_does(uneven_splits, metric, num_classes, monkeypatch):
    monkeypatch.setattr("spgcl.engine.similarity._SIMILARITY_ENTRIES", 1000)
    task = make_task(num_classes=num_classes, noise=3)
    on_cpu, on_cuda = (knn(*task, uneven_splits, metric=metric, device=device) for device in ("cpu", "cuda"))
    for left, right in zip(on_cpu.splits, on_cuda.splits, strict=True):
        assert (right.validation, right.test) == pytest.approx((left.validation, left.test), abs=0.1)


def test_knn_needs_a_voter(task, uneven_splits):
    with pytest.raises(InputError, match="neighbours is 0"):
        knn(*task, uneven_splits, neighbours=0)


def test_most_similar_equals_a_full_sort(task):
    embeddings = task[0]
    rows, similarities = most_similar(embeddings, 17, 5)
    others = [other for other in range(300) if other != 17]
    expected = sorted(others, key=lambda other: -cosine(embeddings[17], embeddings[other]))[:5]
    assert rows.tolist() == expected
    np.testing.assert_allclose(
        similarities, [cosine(embeddings[17], embeddings[other]) for other in expected], rtol=1e-5
    )


@pytest.mark.parametrize("scale", [1e-35, 1e-20, 1e20, 1e36])
def test_long_and_short_rows_are_near_as_others(task, uneven_splits, scale):
    embeddings, labels = task
    uneven = embeddings * np.where(np.arange(300) % 2, scale, 1)[:, None]
    for row in (17, 18):
        expected, found = (most_similar(vectors, row, 5) for vectors in (embeddings, uneven))
        assert found[0].tolist() == expected[0].tolist()
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)
    expected, found = (knn(vectors, labels, uneven_splits).mean for vectors in (embeddings, uneven))
    assert found == pytest.approx(expected, abs=0.5)


def test_most_similar_takes_arrays_that_cannot_be_written_to():
    embeddings = np.eye(3, dtype=np.float32)
    embeddings.setflags(write=False)
    assert most_similar(embeddings, 0, 2)[0].tolist() == [1, 2]


def test_most_similar_leaves_the_node_out_and_breaks_ties_by_row():
    rows, similarities = most_similar(np.ones((4, 3)), 1, 10)
    assert rows.tolist() == [0, 2, 3]
    assert similarities == pytest.approx(1)


def test_a_zero_vector_is_similar_to_nothing():
    rows, similarities = most_similar(np.array([[0.0, 0], [1, 0], [0, 2]]), 0, 2)
    assert rows.tolist() == [1, 2]
    assert similarities.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("row", "count", "named"), [(9, 1, "row 9"), (-1, 1, "row -1"), (0, 0, "count is 0")]
)
def test_most_similar_refuses_what_it_cannot_answer(row, count, named):
    with pytest.raises(InputError, match=named):
        most_similar(np.ones((4, 3)), row, count)
