import numpy as np
import pytest
from graphs import refusing
from scipy import sparse

from spgcl.theory.spectrum import leading
from spgcl.theory.transformed import symmetric_normalised


def parts(count, size, seed=0, degree=4):
    """Random connected graphs next to each other, without edges between them."""
    generator = np.random.default_rng(seed)
    blocks = []
    for _ in range(count):
        block = generator.random((size, size)) < degree / size
        # A path connects the part.
        block |= np.eye(size, k=1, dtype=bool)
        blocks.append(np.triu(block, 1) | np.triu(block, 1).T)
    return sparse.csr_array(sparse.block_diag(blocks, format="csr"), dtype=np.float64)


# Up to 400 nodes a dense solver is used. Eigenvalues of dense random graphs are below the polynomial's cut.
@pytest.mark.parametrize(
    ("count", "size", "degree"), [(1, 50, 4), (3, 30, 4), (1, 450, 2), (4, 150, 4), (2, 250, 60)]
)
def test_leading_eigenvectors_against_a_dense_solver(count, size, degree):
    adjacency = parts(count, size, degree=degree)
    found = leading(adjacency, 7)
    matrix = symmetric_normalised(adjacency).toarray()
    values = np.linalg.eigvalsh(matrix)[::-1]
    assert found.components == count
    np.testing.assert_allclose(found.values, values[:7], atol=1e-9)
    assert (values[6] < 0.5) == (degree == 60)
    assert values[count - 1] == pytest.approx(1) and values[count] < 1 - 1e-4
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(7), atol=1e-6)
    np.testing.assert_allclose(matrix @ found.vectors, found.vectors * found.values, atol=1e-5)


def test_more_parts_than_eigenvalues_are_all_one():
    adjacency = parts(5, 20)
    found = leading(adjacency, 3)
    assert found.values.tolist() == [1, 1, 1] and found.vectors.shape == (100, 3)
    matrix = symmetric_normalised(adjacency)
    np.testing.assert_allclose(matrix @ found.vectors, found.vectors, atol=1e-12)


def test_more_eigenvectors_than_nodes_are_refused():
    with refusing(21, 20):
        leading(parts(1, 20), 21)
