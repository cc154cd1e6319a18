import gzip
import json
import pickle
from collections import defaultdict

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from spgcl.datasets.readers import READERS
from spgcl.errors import InputError


def _neighbours(graph):
    return {node: part.tolist() for node, part in enumerate(np.split(graph.columns, graph.rows[1:-1]))}


def _save_splits(path, records):
    np.save(path, np.array(records, dtype=object), allow_pickle=True)
    return path


def _pickled(path, value):
    path.write_bytes(pickle.dumps(value, protocol=3))
    return path


def test_planetoid_puts_test_rows_in_place_and_zeros_where_there_are_none(tmp_path):
    # 600 known nodes; of the test range 600 ... 603 the files describe 602, 600 and 603, in this order.
    classes = np.eye(3, dtype=np.int32)
    values = {
        "allx": sparse.csr_matrix(np.ones((600, 4), dtype=np.float32)),
        "ally": classes[np.arange(600) % 3],
        "tx": sparse.csr_matrix(np.diag([2.0, 3.0, 4.0, 0.0]).astype(np.float32)[:3]),
        "ty": classes[[2, 1, 2]],
        "y": classes[np.arange(90) % 3],
        "graph": defaultdict(list, {0: [1, 1, 0], 1: [0], 602: [5]}),
    }
    paths = {role: _pickled(tmp_path / role, value) for role, value in values.items()}
    paths["test_index"] = tmp_path / "index"
    paths["test_index"].write_text("602\n600\n603\n")
    contents = READERS["planetoid"](paths)
    assert sparse.issparse(contents.graph.features)
    rows = contents.graph.features.toarray()
    assert rows[600:].tolist() == [[0, 3, 0, 0], [0, 0, 0, 0], [2, 0, 0, 0], [0, 0, 4, 0]]
    assert contents.labels[600:].tolist() == [1, 0, 2, 2]
    assert contents.graph.num_edges == 2 and _neighbours(contents.graph)[5] == [602]
    assert np.flatnonzero(contents.splits.train[0]).tolist() == list(range(90))
    assert np.flatnonzero(contents.splits.validation[0]).tolist() == list(range(90, 590))
    assert np.flatnonzero(contents.splits.test[0]).tolist() == [600, 602, 603]


def test_gnn_benchmark_becomes_binary_and_leaves_pickled_names_alone(tmp_path):
    matrices = {"adj": [[0, 1, 0], [0, 0, 0], [1, 0, 0]], "attr": np.diag([5.0, 1.0, 9.0])}
    parts = {
        f"{name}_{part}": getattr(sparse.csr_array(matrix), part)
        for name, matrix in matrices.items()
        for part in ("data", "indices", "indptr", "shape")
    }
    names = np.array(["a", None], dtype=object)
    np.savez(tmp_path / "graph.npz", labels=[0, 1, 0], class_names=names, **parts)
    contents = READERS["gnn-benchmark"]({"archive": tmp_path / "graph.npz"})
    assert contents.graph.features.toarray().tolist() == np.eye(3).tolist()
    assert _neighbours(contents.graph) == {0: [1, 2], 1: [0], 2: [0]}
    assert contents.splits is None and contents.labels.tolist() == [0, 1, 0]


def _save_heterophilous(path, features):
    masks = np.eye(4, dtype=bool)[:3]
    np.savez_compressed(
        path,
        node_features=features,
        node_labels=np.array([0, 1, 1, 0]),
        edges=np.array([[0, 1], [1, 2], [2, 3]]),
        train_masks=masks[[0, 0]],
        val_masks=masks[[1, 1]],
        test_masks=masks[[2, 2]],
    )
    return {"archive": path}


def test_heterophilous_features_are_sparse_only_when_mostly_zero(tmp_path):
    dense, thin = (
        READERS["heterophilous"](_save_heterophilous(tmp_path / name, values.astype(np.float32)))
        for name, values in (("a.npz", np.ones((4, 6))), ("b.npz", np.eye(4, 6)))
    )
    assert isinstance(dense.graph.features, np.ndarray) and sparse.issparse(thin.graph.features)
    assert thin.graph.num_edges == 3 and len(thin.splits) == 2
    assert thin.splits.validation.tolist() == [[False, True, False, False]] * 2
    directed = READERS["heterophilous"]({"archive": tmp_path / "a.npz"}, directed=True)
    assert _neighbours(directed.graph) == {0: [1], 1: [2], 2: [3], 3: []}


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"text", b"\x93NUMPY"])
def test_an_archive_that_is_none_is_named(tmp_path, content):
    (tmp_path / "graph.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"graph\.npz: "):
        READERS["heterophilous"]({"archive": tmp_path / "graph.npz"})


def test_an_archive_of_another_layout_is_named(tmp_path):
    np.savez(tmp_path / "graph.npz", x=np.zeros(3))
    with pytest.raises(InputError, match=r"graph\.npz: .*adj_indices"):
        READERS["gnn-benchmark"]({"archive": tmp_path / "graph.npz"})


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize(
    "header, rows",
    [("feature", ["0,1,1", "0,0,0", "1,0,0"]), ("feature(feature_amount:2)", ["2,1,2", "", "0"])],
)
def test_geom_gcn_reads_both_feature_forms_plain_or_zipped(tmp_path, header, rows, zipped):
    # Nodes out of order, an index listed twice, a repeated edge and a self loop, as in the published files.
    lines = [f"{node}\t{rows[node]}\t{node % 2}" for node in (2, 0, 1)]
    text = "\n".join([f"node_id\t{header}\tlabel", *lines, ""]).encode()
    nodes = tmp_path / ("nodes.txt.gz" if zipped else "nodes.txt")
    nodes.write_bytes(gzip.compress(text) if zipped else text)
    edges = tmp_path / "edges.txt"
    edges.write_text("node_id\tnode_id\n0\t1\n0\t1\n2\t2\n2\t1\n")
    masks = np.eye(3, dtype=np.uint8)
    np.savez(tmp_path / "split.npz", train_mask=masks[0], val_mask=masks[1], test_mask=masks[2])
    paths = {"nodes": nodes, "edges": edges, "split_0": tmp_path / "split.npz"}
    contents = READERS["geom-gcn"](paths, directed=True)
    assert contents.graph.features.toarray().tolist() == [[0, 1, 1], [0, 0, 0], [1, 0, 0]]
    assert contents.labels.tolist() == [0, 1, 0]
    assert _neighbours(contents.graph) == {0: [1], 1: [], 2: [1]}
    assert contents.splits.test.tolist() == [[False, False, True]]


def test_geom_gcn_names_the_line_that_is_wrong(tmp_path):
    (tmp_path / "edges.txt").write_text("node_id\tnode_id\n0\t1\n")
    (tmp_path / "nodes.txt").write_text("node_id\tfeature\tlabel\n0\t1,0\t0\n1\t1,0\n")
    with pytest.raises(InputError, match=r"nodes\.txt, line 3"):
        READERS["geom-gcn"]({"nodes": tmp_path / "nodes.txt", "edges": tmp_path / "edges.txt"})


def test_musae_orders_labels_by_new_id_and_drops_unused_columns(tmp_path):
    (tmp_path / "targets.csv").write_text(
        "id,days,mature,views,partner,new_id\n9,1,True,5,False,2\n8,1,False,5,False,0\n7,1,True,5,True,1\n"
    )
    (tmp_path / "edges.csv").write_text("from,to\n0,2\n1,2\n")
    (tmp_path / "features.json").write_text(json.dumps({"1": [7, 7, 40], "0": [3], "2": []}))
    splits = _save_splits(tmp_path / "splits.npy", [{"train": [0], "valid": [1], "test": [2]}])
    paths = {role: next(tmp_path.glob(f"{role}.*")) for role in ("targets", "edges", "features")}
    contents = READERS["musae"](paths | {"splits": splits})
    assert contents.labels.tolist() == [0, 1, 1]
    assert contents.graph.features.toarray().tolist() == [[1, 0, 0], [0, 1, 1], [0, 0, 0]]
    assert _neighbours(contents.graph) == {0: [2], 1: [2], 2: [0, 1]}
    assert contents.splits.train.tolist() == [[True, False, False]]


def _wikics_record():
    masks = np.eye(4, dtype=bool)
    return {
        "features": [[0.5, -1.0], [1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
        "labels": [0, 1, 2, 0],
        "links": [[1, 0], [0], [], [2]],
        "train_masks": masks[[0, 1]].tolist(),
        "val_masks": masks[[1, 0]].tolist(),
        "stopping_masks": masks[[2, 2]].tolist(),
        "test_mask": masks[3].tolist(),
    }


def test_wikics_repeats_its_test_mask_and_uses_the_validation_masks(tmp_path):
    path = tmp_path / "data.json"
    path.write_text(json.dumps(_wikics_record()))
    contents = READERS["wikics"]({"articles": path})
    assert contents.splits.validation.tolist() == np.eye(4, dtype=bool)[[1, 0]].tolist()
    assert contents.splits.test.tolist() == np.eye(4, dtype=bool)[[3, 3]].tolist()
    assert _neighbours(contents.graph) == {0: [1], 1: [0], 2: [3], 3: [2]}
    assert contents.graph.features[3].tolist() == [5.0, 6.0] and contents.labels.tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize("missing", ["links", "test_mask"])
def test_wikics_without_a_part_is_named(tmp_path, missing):
    record = _wikics_record()
    del record[missing]
    (tmp_path / "data.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match=rf"data\.json: .*{missing}"):
        READERS["wikics"]({"articles": tmp_path / "data.json"})


def test_genius_reads_its_matrices_and_splits(tmp_path):
    savemat(
        tmp_path / "genius.mat",
        {
            "edge_index": np.array([[0, 1, 1], [1, 0, 2]], dtype=np.int64),
            "node_feat": np.arange(6, dtype=np.float64).reshape(3, 2),
            "label": np.array([[0], [1], [1]]),
        },
    )
    records = [{"train": np.array([0]), "valid": np.array([1]), "test": np.array([2])}] * 5
    splits = _save_splits(tmp_path / "splits.npy", records)
    contents = READERS["genius"]({"matrices": tmp_path / "genius.mat", "splits": splits})
    assert contents.graph.features.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert _neighbours(contents.graph) == {0: [1], 1: [0, 2], 2: [1]}
    assert contents.labels.tolist() == [0, 1, 1] and len(contents.splits) == 5


def test_genius_that_is_no_matlab_file_is_named(tmp_path):
    (tmp_path / "genius.mat").write_bytes(b"short")
    with pytest.raises(InputError, match=r"genius\.mat: "):
        READERS["genius"]({"matrices": tmp_path / "genius.mat"})


def test_twitch_gamers_has_seven_standardised_features(tmp_path):
    (tmp_path / "features.csv").write_text(
        "views,mature,life_time,created_at,updated_at,numeric_id,dead_account,language,affiliate\n"
        "10,1,969,2016-02-16,2018-10-12,0,0,EN,1\n"
        "20,0,2699,2011-05-19,2018-10-08,1,0,FR,0\n"
        "60,1,3149,2010-02-27,2018-10-12,2,0,EN,1\n"
    )
    (tmp_path / "edges.csv").write_text("numeric_id_1,numeric_id_2\n0,1\n2,1\n")
    splits = _save_splits(tmp_path / "splits.npy", [{"train": [2], "valid": [0], "test": [1]}])
    paths = {"features": tmp_path / "features.csv", "edges": tmp_path / "edges.csv", "splits": splits}
    contents = READERS["twitch-gamers"](paths)
    features = contents.graph.features
    assert features.shape == (3, 7) and contents.labels.tolist() == [1, 0, 1]
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(
        features[:, 0], np.array([-20, -10, 30]) / np.std([10, 20, 60], ddof=1), rtol=1e-6
    )
    created = np.array([20160216, 20110519, 20100227], dtype=float)
    np.testing.assert_allclose(features[:, 2], (created - created.mean()) / created.std(ddof=1), rtol=1e-5)
    # A column that never changes (no dead account here) stays zero; languages are numbered by appearance.
    assert features[:, 4].tolist() == [0, 0, 0]
    assert features[0, 5] == features[2, 5] < features[1, 5]


def test_splits_beyond_the_graph_are_named(tmp_path):
    savemat(
        tmp_path / "genius.mat", {"edge_index": [[0], [1]], "node_feat": np.ones((2, 1)), "label": [0, 1]}
    )
    splits = _save_splits(tmp_path / "splits.npy", [{"train": [0], "valid": [1], "test": [2]}, {}])
    with pytest.raises(InputError, match=r"splits\.npy: .*2 nodes"):
        READERS["genius"]({"matrices": tmp_path / "genius.mat", "splits": splits})
