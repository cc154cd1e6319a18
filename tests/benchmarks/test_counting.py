"""The formula of the floor against counts made by hand."""

from dataclasses import replace

import numpy as np
import pytest
from graphs import CPU
from scipy import sparse
from timing.counting import Cost, Extent, count, is_counted, measure_extent
from timing.floor import floor, least_seconds, product_size

from spgcl.graph import Graph

# Width 2, K_pos + K_neg = 3.
SETTINGS = {"hidden": 2, "positives": 1, "negatives": 2}
DENSE = Extent(
    pool=5,
    distinct=4,
    second_rows=4,
    first_rows=6,
    feature_rows=7,
    second_entries=10,
    first_entries=14,
    feature_entries=9,
    sparse_features=False,
)
SPARSE = replace(DENSE, sparse_features=True)


def path_graph(num_nodes, num_features=3, features=None):
    nodes = np.arange(num_nodes - 1)
    values = np.ones((num_nodes, num_features), dtype=np.float32) if features is None else features
    return Graph.from_edges(nodes, nodes + 1, values)


def test_a_step_with_dense_features_counted_by_hand():
    first = 4 * 6 * 3 * 2
    second = 4 * 10 * 2 + 6 * 4 * 2 * 2
    head = 12 * 4 * 2 * 2
    # 16 pairs of distinct nodes; their gradient over all of them is less than over 5 anchors' 3 pairs, twice.
    similarities = 2 * 16 * 2 + 2 * 2 * 16
    # 6 weights in the first layer; 4 in the second and in each of the head's two.
    weights = 4 * (9 * (6 + 12) + 12)
    matrices = 2 * 4 * 6 * 3 + 2 * 8 * 10
    activations = 20 * 2 * (6 + 2 * 4 + 2 * 4)

    assert count(DENSE, 3, SETTINGS) == Cost(
        operations=first + second + head + similarities, bytes=weights + matrices + activations + 8 * 16
    )


def test_batch_norm_over_many_rows_is_counted_by_the_covariance_of_its_inputs():
    many = replace(DENSE, second_rows=1000)
    fewer = replace(DENSE, second_rows=999)

    assert count(many, 3, SETTINGS).operations - count(fewer, 3, SETTINGS).operations == 3 * 2 * 2
    more = count(many, 3, SETTINGS).operations - count(DENSE, 3, SETTINGS).operations
    assert more == (3 * 1000 + 4 * 2 + 6 * 4 - 6 * 4) * 2 * 2


def test_sparse_features_cost_their_entries():
    dense, thin = count(DENSE, 3, SETTINGS), count(SPARSE, 3, SETTINGS)

    assert thin.operations - dense.operations == 4 * (9 + 14) * 2 - 4 * 6 * 3 * 2
    assert thin.bytes - dense.bytes == 2 * 8 * (9 + 14) - 2 * 4 * 6 * 3 + 20 * 2 * 7


def test_few_pairs_make_the_gradient_of_similarities_sparse():
    wide = replace(DENSE, distinct=100, pool=100)
    more = count(wide, 3, {**SETTINGS, "negatives": 3}).operations - count(wide, 3, SETTINGS).operations

    assert more == 2 * 2 * 2 * 100


def test_the_extent_of_a_step_on_a_path(tiny_settings):
    # One seed's pool of one hop, then two layers: two, three and four nodes to either side of the seed.
    graph = path_graph(400)
    extent = measure_extent(graph, tiny_settings(seeds=1, hops=1, pool_size=0, batch_norm="none"), seed=1)

    assert (extent.pool, extent.distinct, extent.second_rows) == (3, 3, 3)
    assert (extent.first_rows, extent.feature_rows) == (5, 7)
    assert (extent.second_entries, extent.first_entries, extent.feature_entries) == (9, 15, 21)
    assert not extent.sparse_features


def test_batch_norm_over_all_rows_needs_all_rows(tiny_settings):
    graph = path_graph(50)
    given = {"seeds": 1, "hops": 1, "pool_size": 0, "batch_norm": "affine"}
    extent = measure_extent(graph, tiny_settings(**given, batch_norm_rows="all"))
    few = measure_extent(graph, tiny_settings(**given, batch_norm_rows="pool"))

    assert extent.distinct <= 3
    assert extent.second_rows == extent.first_rows == extent.feature_rows == 50
    assert extent.second_entries == extent.first_entries == 50 + 2 * 49
    assert few.second_rows == few.distinct


def test_a_pool_keeps_multiplicity_and_its_size(tiny_settings):
    graph = path_graph(30)
    every = measure_extent(graph, tiny_settings(seeds=30, hops=1, pool_size=0))
    cut = measure_extent(graph, tiny_settings(seeds=30, hops=1, pool_size=20))

    assert (every.pool, every.distinct) == (30 + 2 * 29, 30)
    assert cut.pool == 20
    assert cut.distinct < 20


def test_thin_features_are_counted_as_sparse(tiny_settings):
    thin = sparse.eye_array(40, dtype=np.float32, format="csr")
    settings = tiny_settings(batch_norm="affine")
    extent = measure_extent(path_graph(40, features=thin), settings)

    assert extent.sparse_features
    assert extent.feature_entries == 40
    # Then the largest dense product is in the second layer.
    assert product_size(extent, 40, 6) == (40, 6, 6)
    assert product_size(replace(extent, sparse_features=False), 40, 6) == (40, 40, 6)


def test_the_floor_is_the_longer_of_the_two_and_the_replay():
    assert least_seconds(100, 10, rate=50.0, bandwidth=100.0, replay=0.5) == pytest.approx(2.5)
    assert least_seconds(100, 1000, rate=50.0, bandwidth=100.0, replay=0.5) == pytest.approx(10.5)


def test_a_floor_is_measured_and_compared_with_a_step(tiny, tiny_settings):
    found = floor(tiny.graph, tiny_settings(), CPU, step=3.0, seconds=0.001)

    assert found is not None
    rate, bandwidth = found["operations_per_second"]["float32"], found["bytes_per_second"]
    least = found["seconds"]["float32"]
    assert least == pytest.approx(max(found["operations"] / rate, found["bytes"] / bandwidth))
    assert found["replay_seconds"] == 0
    assert found["ratios"]["float32"] == pytest.approx(3 / least)


def test_other_rules_have_no_floor(tiny, tiny_settings):
    settings = tiny_settings(own_positive=False)

    assert not is_counted(settings)
    assert floor(tiny.graph, settings, CPU, step=1.0) is None
