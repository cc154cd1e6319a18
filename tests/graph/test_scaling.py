import numpy as np
from scipy import sparse

from spgcl.graph.scaling import column_scales, unit_features


def test_measurements_get_mean_0_and_deviation_1_whatever_their_units():
    values = np.random.default_rng(0).normal([50_000, 0.2], [20_000, 0.01], (500, 2)).astype(np.float32)
    offsets, scales = column_scales(values)
    scaled = (values - offsets) * scales
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(scaled.std(axis=0), 1, atol=1e-3)


def test_counts_keep_their_zeros_and_are_divided_by_the_root_of_their_deviation():
    counts = (np.random.default_rng(0).random((400, 3)) < [0.02, 0.1, 0.3]).astype(np.float32)
    offsets, scales = column_scales(counts)
    assert not offsets.any()
    np.testing.assert_allclose(scales, counts.std(axis=0) ** -0.5, rtol=1e-5)


def test_constant_columns_become_0():
    values = np.ones((50, 3), dtype=np.float32)
    values[:, 1] = np.arange(50)
    assert column_scales(values)[1].astype(bool).tolist() == [False, True, False]


def test_sparse_and_dense_features_give_the_same_rows_of_length_1():
    dense = np.random.default_rng(0).poisson(0.2, (60, 30)).astype(np.float32)
    dense[7] = 0
    scales = column_scales(dense)
    np.testing.assert_allclose(column_scales(sparse.csr_array(dense))[1], scales[1], rtol=1e-6)
    rows = unit_features(dense, *scales)
    np.testing.assert_allclose(unit_features(sparse.csr_array(dense), *scales).toarray(), rows, atol=1e-6)
    lengths = np.linalg.norm(rows, axis=1)
    np.testing.assert_allclose(lengths[dense.any(axis=1)], 1, rtol=1e-5)
    assert lengths[7] == 0
