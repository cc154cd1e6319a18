import numpy as np
import pytest
import torch
from graphs import CPU
from scipy import sparse

from spgcl.engine import patterns
from spgcl.engine.tensors import DENSE_FROM, GraphTensors, SparseMatrix, distinct, divided_by_row_sums
from spgcl.graph import Graph


def random_matrix(num_rows=7, num_columns=5, *, density=0.4, seed=0):
    """A matrix with an empty row and an empty column, in both forms."""
    generator = np.random.default_rng(seed)
    dense = generator.normal(size=(num_rows, num_columns))
    dense[generator.random(dense.shape) > density] = 0
    dense[2] = 0
    dense[:, 1] = 0
    return SparseMatrix.of(sparse.csr_array(dense), CPU), torch.from_numpy(dense)


def naive_product(matrix, other):
    product = torch.zeros(matrix.shape[0], other.shape[1], dtype=other.dtype)
    for row in range(matrix.shape[0]):
        for column in range(matrix.shape[1]):
            product[row] += matrix[row, column] * other[column]
    return product


@pytest.mark.parametrize("seed", range(3))
def test_products_match_the_dense_ones(seed):
    matrix, dense = random_matrix(seed=seed)
    other = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(matrix @ other, naive_product(dense, other))
    # A product reads its right side as a table of rows; a transposed view is not laid out as one.
    strided = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).T
    torch.testing.assert_close(matrix @ strided, naive_product(dense, strided))


def test_entries_come_in_any_order_and_add_up_where_they_repeat():
    generator = torch.Generator().manual_seed(0)
    # Rows 0 and 6 stay empty.
    rows = torch.randint(1, 6, (40,), generator=generator)
    columns = torch.randint(5, (40,), generator=generator)
    values = torch.randn(40, dtype=torch.float64, generator=generator)
    dense = torch.zeros(7, 5, dtype=torch.float64)
    for row, column, value in zip(rows, columns, values, strict=True):
        dense[row, column] += value

    matrix = SparseMatrix.from_entries(rows, columns, values, (7, 5))

    assert matrix.shape == (7, 5)
    assert matrix.counts.tolist() == torch.bincount(rows, minlength=7).tolist()
    torch.testing.assert_close(matrix @ torch.eye(5, dtype=torch.float64), dense)


def test_the_transpose_is_the_transpose():
    matrix, dense = random_matrix()
    transposed = matrix.transposed
    assert transposed.shape == (5, 7)
    torch.testing.assert_close(transposed.dense(), dense.T)
    torch.testing.assert_close(transposed.transposed.dense(), dense)


def test_the_transpose_of_a_symmetric_matrix_is_itself():
    matrix = SparseMatrix.of(sparse.csr_array(np.array([[1.0, 2.0], [2.0, 0.0]])), CPU, symmetric=True)
    assert matrix.transposed is matrix


@pytest.mark.parametrize("chosen", [[0, 1, 2, 3, 4, 5, 6], [5, 2, 0], [3, 3, 2, 3], [2], []])
def test_selected_rows_come_in_the_order_given(chosen):
    matrix, dense = random_matrix()
    selected = matrix.select(torch.tensor(chosen, dtype=torch.int64))
    assert selected.shape[1] == 5
    torch.testing.assert_close(selected.dense(), dense[chosen])
    assert selected.counts.tolist() == [int((dense[row] != 0).sum()) for row in chosen]


@pytest.mark.parametrize("chosen", [[5, 2, 0], [2], [3, 3]])
def test_a_restricted_matrix_has_the_columns_that_occur(chosen):
    matrix, dense = random_matrix()
    restricted, used = matrix.select(torch.tensor(chosen)).restrict()
    expected = sorted({column for row in chosen for column in range(5) if dense[row, column] != 0})
    assert used.tolist() == expected
    assert restricted.shape[1] == len(expected)
    torch.testing.assert_close(restricted.dense(), dense[chosen][:, expected])


def test_rows_of_entries_are_a_coordinate_list():
    matrix, dense = random_matrix()
    pairs = list(zip(matrix.row_of_entry.tolist(), matrix.columns.tolist(), strict=True))
    assert pairs == [(row, column) for row in range(7) for column in range(5) if dense[row, column] != 0]


@pytest.mark.parametrize("chosen", [None, [4, 2, 2, 0]])
def test_gradients_of_products_match_finite_differences(chosen):
    matrix, _ = random_matrix()
    if chosen is not None:
        matrix, _ = matrix.select(torch.tensor(chosen)).restrict()
    other = torch.randn(matrix.shape[1], 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda factor: matrix @ factor, (other,))


def test_gradients_of_a_symmetric_product_match_finite_differences():
    dense = np.array([[1.0, 2.0, 0.0], [2.0, 0.0, 0.5], [0.0, 0.5, 3.0]])
    matrix = SparseMatrix.of(sparse.csr_array(dense), CPU, symmetric=True)
    other = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda factor: matrix @ factor, (other,))


@pytest.mark.parametrize("rows_per_part", [1, 2, 3, 7])
def test_gradients_added_up_from_parts_of_the_rows_are_the_same(rows_per_part, monkeypatch):
    monkeypatch.setattr(patterns, "LEAST_ENTRIES", 0)
    monkeypatch.setattr(patterns, "ROWS_PER_PART", rows_per_part)
    matrix, dense = random_matrix()
    assert len(matrix._transposed_parts) == -(-7 // rows_per_part)
    other = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(7, 3, dtype=torch.float64)
    (found,) = torch.autograd.grad(((matrix @ other) * weights).sum(), other)
    torch.testing.assert_close(found, dense.T @ weights)


def test_thin_parts_of_the_rows_are_left_together(monkeypatch):
    monkeypatch.setattr(patterns, "ROWS_PER_PART", 2)
    matrix, _ = random_matrix()
    (part,) = matrix._transposed_parts
    assert torch.equal(part.dense(), matrix.transposed.dense())


@pytest.mark.parametrize("rows_per_part", [3, 100])
def test_other_values_at_the_same_entries(rows_per_part, monkeypatch):
    """Products and gradients are those of the new values, and the pattern is worked on once."""
    monkeypatch.setattr(patterns, "LEAST_ENTRIES", 0)
    monkeypatch.setattr(patterns, "ROWS_PER_PART", rows_per_part)
    matrix, dense = random_matrix()
    other = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(7, 3, dtype=torch.float64)
    for values in (torch.arange(len(matrix.values)).double(), torch.zeros(len(matrix.values)).double()):
        changed = matrix.revalued(values)
        expected = torch.zeros_like(dense)
        expected[dense != 0] = values
        torch.testing.assert_close(changed @ other, expected @ other)
        torch.testing.assert_close(changed.transposed.dense(), expected.T)
        (found,) = torch.autograd.grad(((changed @ other) * weights).sum(), other)
        torch.testing.assert_close(found, expected.T @ weights)
        assert changed.pattern is matrix.pattern
    torch.testing.assert_close(matrix.dense(), dense)


# Few node numbers among many are sorted, many are marked in a mask: both give the same answer.
@pytest.mark.parametrize("num_nodes", [10, 1000])
def test_distinct_nodes_and_the_indices_into_them(num_nodes):
    nodes = torch.tensor([7, 3, 3, 9, 0, 7])
    values, indices = distinct(nodes, num_nodes)
    assert values.tolist() == sorted(set(nodes.tolist()))
    assert values[indices].tolist() == nodes.tolist()
    assert values.dtype == torch.int64


def test_no_nodes_are_no_distinct_nodes():
    values, indices = distinct(torch.empty(0, dtype=torch.int64), 100)
    assert (len(values), len(indices)) == (0, 0)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_feature_rows_are_divided_by_their_absolute_sum(as_sparse):
    rows = np.array([[1, -3, 0], [0, 0, 0], [0, 5, 5]], dtype=np.float32)
    divided = divided_by_row_sums(sparse.csr_array(rows) if as_sparse else rows)
    assert sparse.issparse(divided) == as_sparse and divided.dtype == np.float32
    result = divided.toarray() if as_sparse else divided
    np.testing.assert_allclose(result, [[0.25, -0.75, 0], [0, 0, 0], [0, 0.5, 0.5]])
    assert rows[0, 0] == 1


def graph_with(features):
    return Graph.from_edges(np.array([0, 1]), np.array([1, 2]), features)


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("non_zeros", [1, 40])
def test_features_take_the_form_that_is_quicker_to_multiply(non_zeros, as_sparse):
    rows = np.zeros((4, 20), dtype=np.float32)
    rows.reshape(-1)[:non_zeros] = np.arange(1, non_zeros + 1)
    tensors = GraphTensors.of(graph_with(sparse.csr_array(rows) if as_sparse else rows), CPU)
    stays_sparse = non_zeros / rows.size < DENSE_FROM["cpu"]
    assert isinstance(tensors.features, SparseMatrix) == stays_sparse
    kept = tensors.features.dense() if isinstance(tensors.features, SparseMatrix) else tensors.features
    np.testing.assert_array_equal(kept.numpy(), rows)


def test_smoothing_once_is_the_product_with_the_adjacency():
    features = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    tensors = GraphTensors.of(graph_with(features), CPU)
    expected = naive_product(tensors.adjacency.dense(), torch.from_numpy(features))
    torch.testing.assert_close(tensors.smoothed, expected)
    assert tensors.smoothed is tensors.smoothed


def test_sparse_features_are_not_smoothed_into_dense_ones():
    rows = sparse.csr_array((np.ones(1, np.float32), ([0], [0])), shape=(4, 50))
    with pytest.raises(TypeError, match="multiplied by the weights first"):
        _ = GraphTensors.of(graph_with(rows), CPU).smoothed


def test_graph_tensors_say_what_the_graph_is():
    plain = GraphTensors.of(graph_with(np.ones((4, 2))), CPU)
    assert (plain.num_nodes, plain.device, plain.weighted) == (4, CPU, False)
    assert plain.adjacency.symmetric
    weighted = Graph.from_edges(
        np.array([0, 1]), np.array([1, 2]), np.ones((3, 2)), weights=np.array([2.0, 3.0]), directed=True
    )
    tensors = GraphTensors.of(weighted, CPU, normalise_features=True)
    assert tensors.weighted and not tensors.adjacency.symmetric
    np.testing.assert_allclose(tensors.features.numpy(), np.full((3, 2), 0.5))
