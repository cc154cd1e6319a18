from functools import partial

import numpy as np
import pytest
from graphs import make_graph
from scipy import sparse
from scipy.linalg import expm

from spgcl.errors import InputError
from spgcl.methods.parts import diffusion
from spgcl.methods.parts.diffusion import heat, personalised_pagerank, sharpened

# A graph in several parts; the last node is isolated.
random_graph = partial(make_graph, num_features=1, num_edges=70)


def dense_pagerank(graph, restart):
    looped = graph.adjacency.toarray().astype(np.float64) + np.eye(graph.num_nodes)
    degrees = looped.sum(axis=1)
    if graph.directed:
        matrix = looped / degrees[:, None]
    else:
        matrix = looped / np.sqrt(degrees[:, None] * degrees[None, :])
    return restart * np.linalg.inv(np.eye(graph.num_nodes) - (1 - restart) * matrix)


def dense_heat(graph, time):
    looped = graph.adjacency.toarray().astype(np.float64) + np.eye(graph.num_nodes)
    return expm(time * (looped / looped.sum(axis=0) - np.eye(graph.num_nodes)))


def require_close(found, expected):
    assert isinstance(found, sparse.csr_array) and found.dtype == np.float32
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-6)


KINDS = [(directed, weighted) for directed in (False, True) for weighted in (False, True)]


@pytest.mark.parametrize("restart", [0.05, 0.2, 0.9, 1.0])
@pytest.mark.parametrize(("directed", "weighted"), KINDS)
def test_pagerank_is_the_inverse(directed, weighted, restart):
    graph = random_graph(directed=directed, weighted=weighted)
    require_close(personalised_pagerank(graph, restart=restart, keep=0), dense_pagerank(graph, restart))


@pytest.mark.parametrize("time", [0.0, 0.3, 5.0, 30.0])
@pytest.mark.parametrize(("directed", "weighted"), KINDS)
def test_heat_is_the_matrix_exponential(directed, weighted, time):
    graph = random_graph(directed=directed, weighted=weighted)
    found = heat(graph, time=time, keep=0)
    require_close(found, dense_heat(graph, time))
    np.testing.assert_allclose(found.sum(axis=0), 1, rtol=1e-5)


def test_walks_of_a_directed_graph_end_somewhere():
    found = personalised_pagerank(random_graph(directed=True), restart=0.2, keep=0)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("keep", [1, 3, 8])
@pytest.mark.parametrize(
    ("compute", "dense"),
    [
        (lambda graph, keep: personalised_pagerank(graph, restart=0.2, keep=keep), dense_pagerank),
        (lambda graph, keep: heat(graph, time=2.0, keep=keep), dense_heat),
    ],
)
def test_the_largest_entries_of_every_row_are_kept(compute, dense, keep):
    graph = random_graph(weighted=True)
    found = compute(graph, keep)
    expected = dense(graph, 0.2 if dense is dense_pagerank else 2.0)
    assert found.has_sorted_indices and found.has_canonical_format
    for row in range(graph.num_nodes):
        columns = found.indices[found.indptr[row] : found.indptr[row + 1]]
        assert len(columns) == min(keep, np.count_nonzero(expected[row] > 1e-12))
        left_out = np.delete(expected[row], columns)
        # What is cut off was not needed to the last digit: entries this close may change places.
        assert expected[row, columns].min() >= left_out.max() - 1e-3
        np.testing.assert_allclose(
            found.data[found.indptr[row] : found.indptr[row + 1]], expected[row, columns], atol=1e-3
        )


def test_more_entries_than_there_are_keep_all():
    graph = random_graph()
    kept = personalised_pagerank(graph, restart=0.2, keep=1000)
    everything = personalised_pagerank(graph, restart=0.2, keep=0)
    assert kept.nnz == everything.nnz
    np.testing.assert_allclose(kept.toarray(), everything.toarray(), atol=1e-3)


@pytest.mark.parametrize("keep", [0, 4])
def test_blocks_of_rows_give_the_same(monkeypatch, keep):
    graph = random_graph()
    whole = personalised_pagerank(graph, restart=0.2, keep=keep)
    # Seven rows per block do not divide forty nodes.
    monkeypatch.setattr(diffusion, "_BLOCK_NUMBERS", 7 * graph.num_nodes)
    blocked = personalised_pagerank(graph, restart=0.2, keep=keep)
    np.testing.assert_array_equal(blocked.indices, whole.indices)
    np.testing.assert_allclose(blocked.data, whole.data, rtol=1e-6)


def test_an_isolated_node_keeps_everything():
    for found in (
        personalised_pagerank(random_graph(), restart=0.2, keep=3),
        heat(random_graph(), time=5.0, keep=3),
    ):
        last = found[[-1]].toarray()[0]
        assert last[-1] == pytest.approx(1, abs=2e-3) and np.count_nonzero(last) == 1


def test_all_entries_of_a_large_graph_are_refused_with_their_bytes():
    graph = random_graph(5001)
    for keep in (0, 5001):
        with pytest.raises(InputError, match=r"5,001 nodes .*200,080,008 bytes.*keep"):
            personalised_pagerank(graph, restart=0.2, keep=keep)
    assert personalised_pagerank(graph, restart=0.2, keep=2).nnz <= 2 * 5001


@pytest.mark.parametrize(("directed", "weighted"), KINDS)
def test_a_sharpened_diffusion_is_cut_and_its_columns_reach_one(directed, weighted):
    graph = random_graph(directed=directed, weighted=weighted)
    matrix = personalised_pagerank(graph, restart=0.2, keep=0)
    before = matrix.toarray()
    degree = np.count_nonzero(graph.adjacency.toarray()) / graph.num_nodes
    left = {cut: (before >= cut).sum() / graph.num_nodes for cut in (1e-5, 1e-4, 1e-3, 1e-2)}
    cut = min(left, key=lambda cut: abs(left[cut] - degree))
    expected = np.where(before >= cut, before, 0)
    expected /= expected.max(axis=0)
    found = sharpened(matrix, graph)
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-6)
    assert found.nnz == (before >= cut).sum() < matrix.nnz
    np.testing.assert_array_equal(matrix.toarray(), before)
