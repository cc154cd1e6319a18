import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from scipy import sparse

import spgcl.datasets as datasets
from spgcl.datasets.entries import entries
from spgcl.datasets.loading import load_directed
from spgcl.errors import InputError
from spgcl.evaluation.statistics import edge_homophily, node_homophily

# nodes, edges, classes, features, edge and node homophily, splits, sizes of the first split
FACTS = {
    "cora": (2708, 5278, 7, 1433, 0.810, 0.825, 1, (140, 500, 1000)),
    "citeseer": (3327, 4552, 6, 3703, 0.736, 0.717, 1, (120, 500, 1000)),
    "pubmed": (19717, 44324, 3, 500, 0.802, 0.792, 1, (60, 500, 1000)),
    "amazon-computers": (13752, 245861, 10, 767, 0.777, 0.802, 10, (1375, 1375, 11002)),
    "amazon-photo": (7650, 119081, 8, 745, 0.827, 0.849, 10, (765, 765, 6120)),
    "coauthor-cs": (18333, 81894, 15, 6805, 0.808, 0.832, 10, (1833, 1833, 14667)),
    "coauthor-physics": (34493, 247962, 5, 8415, 0.931, 0.915, 10, (3449, 3449, 27595)),
    "chameleon": (2277, 31371, 5, 2325, 0.230, 0.247, 10, (1092, 729, 456)),
    "squirrel": (5201, 198353, 5, 2089, 0.222, 0.217, 10, (2496, 1664, 1041)),
    "actor": (7600, 26659, 5, 932, 0.217, 0.220, 10, (3648, 2432, 1520)),
    "chameleon-filtered": (890, 8854, 5, 2325, 0.236, 0.244, 10, (409, 287, 194)),
    "squirrel-filtered": (2223, 46998, 5, 2089, 0.207, 0.1905, 10, (1053, 718, 452)),
    "minesweeper": (10000, 39402, 2, 7, 0.683, 0.683, 10, (5000, 2500, 2500)),
    "twitch-de": (9498, 153138, 2, 2514, 0.632, 0.596, 5, (4749, 2374, 2375)),
}


@pytest.mark.parametrize("name", FACTS)
def test_a_benchmark_has_its_published_statistics(benchmark_folder, name):
    dataset = datasets.load(name)
    graph, splits = dataset.graph, dataset.splits
    nodes, edges, classes, features, edge, node, num_splits, sizes = FACTS[name]
    assert (graph.num_nodes, graph.num_edges) == (nodes, edges)
    assert (dataset.num_classes, graph.num_features) == (classes, features)
    assert edge_homophily(graph, dataset.labels) == pytest.approx(edge, abs=0.00051)
    assert node_homophily(graph, dataset.labels) == pytest.approx(node, abs=0.00051)
    assert len(splits) == num_splits
    assert (splits.train[0].sum(), splits.validation[0].sum(), splits.test[0].sum()) == sizes
    assert (dataset.name, dataset.metric, entries()[name].nodes) == (name, entries()[name].metric, nodes)
    assert set(np.unique(dataset.labels)) == set(range(classes)) and not graph.notes


def test_bags_of_words_are_sparse_and_binary(benchmark_folder):
    for name in ("chameleon", "actor", "coauthor-cs", "amazon-photo", "twitch-de"):
        features = datasets.load(name).graph.features
        assert sparse.issparse(features) and set(np.unique(features.data)) == {1.0}


def test_citeseers_missing_nodes_have_no_features(benchmark_folder):
    graph = datasets.load("citeseer").graph
    empty = np.flatnonzero(np.diff(graph.features.indptr) == 0)
    assert len(empty) == 15 and np.count_nonzero(graph.degrees == 0) == 48


@pytest.mark.parametrize("name", ["chameleon", "squirrel", "actor", "twitch-de"])
def test_the_directed_files_hold_the_same_data(benchmark_folder, name):
    plain, directed = datasets.load(name), load_directed(name)
    np.testing.assert_array_equal(directed.labels, plain.labels)
    for part in ("train", "validation", "test"):
        np.testing.assert_array_equal(getattr(directed.splits, part), getattr(plain.splits, part))
    assert (directed.graph.features != plain.graph.features).nnz == 0
    both = directed.graph.adjacency + directed.graph.adjacency.T
    assert directed.graph.directed and ((both != 0) != (plain.graph.adjacency != 0)).nnz == 0


def test_direction_is_refused_where_no_file_has_it():
    with pytest.raises(InputError, match="cora"):
        load_directed("cora")


def test_seeded_splits_are_the_same_everywhere(benchmark_folder):
    splits = datasets.load("amazon-photo").splits
    digest = hashlib.sha256(np.packbits([splits.train, splits.validation, splits.test]).tobytes()).hexdigest()
    assert digest[:16] == "7c32c2b07709969e"
    assert splits.source == "seeded 10/10/80"
    assert not np.array_equal(splits.train[0], splits.train[1])


def test_names_are_known_and_others_get_the_nearest():
    assert {"csbm-homophilic", "csbm-heterophilic", "cora", "questions"} < set(datasets.names())
    with pytest.raises(InputError, match=r"'coar'.*'cora'"):
        datasets.load("coar")


def test_absent_files_name_the_folder_and_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("SPGCL_DATA", str(tmp_path))
    with pytest.raises(InputError, match=f"{tmp_path / 'pubmed'}.*spgcl datasets fetch pubmed"):
        datasets.load("pubmed")


def test_the_cache_folder_is_the_default(tmp_path, monkeypatch):
    monkeypatch.delenv("SPGCL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(InputError, match=str(tmp_path / "cache" / "spgcl" / "cora")):
        datasets.load("cora")


@pytest.fixture
def copied(benchmark_folder, tmp_path, monkeypatch):
    """Copies a data set into a data folder of this test's own."""

    def copy(name):
        shutil.copytree(benchmark_folder / name, tmp_path / name, copy_function=shutil.copyfile)
        for path in [tmp_path / name, *(tmp_path / name).rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        monkeypatch.setenv("SPGCL_DATA", str(tmp_path))
        return tmp_path / name

    return copy


def test_a_tampered_pickle_is_refused_before_it_is_opened(copied):
    folder = copied("cora")
    trace = folder / "trace"
    # The size is kept, so that only the checksum differs; opening it would run the command.
    planted = f"cos\nsystem\n(S'touch {trace}'\ntR.".encode()
    path = folder / "ind.cora.graph"
    path.write_bytes(planted.ljust(path.stat().st_size, b"#"))
    with pytest.raises(InputError, match=r"ind\.cora\.graph .*checksum"):
        datasets.load("cora")
    assert not trace.exists()


def test_a_file_as_published_is_read_as_well_as_its_zipped_copy(copied):
    folder = copied("chameleon")
    kept = folder / "geom-gcn" / "out1_node_feature_label.txt.gz"
    kept.with_suffix("").write_bytes(gzip.decompress(kept.read_bytes()))
    kept.unlink()
    assert load_directed("chameleon").graph.num_features == 2325


def test_an_archive_as_published_is_read_as_well_as_its_compressed_copy(copied):
    path = copied("amazon-photo") / "amazon_electronics_photo.npz"
    published = io.BytesIO()
    # The publisher stores the same members uncompressed: rebuilt here to the byte, as the checksum shows.
    with zipfile.ZipFile(path) as kept, zipfile.ZipFile(published, "w", zipfile.ZIP_STORED) as archive:
        for member in kept.infolist():
            stored = zipfile.ZipInfo(member.filename, member.date_time)
            stored.external_attr, stored.create_system = member.external_attr, member.create_system
            archive.writestr(stored, kept.read(member))
    path.write_bytes(published.getvalue())
    assert path.stat().st_size == 17113960
    assert datasets.load("amazon-photo").graph.num_edges == 119081


def test_coauthor_physics_loads_in_little_memory(benchmark_folder):
    code = (
        "import resource, spgcl.datasets as d, scipy.sparse.csgraph, pathlib\n"
        "d.load('csbm-homophilic')\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "d.load('coauthor-physics')\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(done.stdout) * unit < 400 * 2**20


@pytest.mark.parametrize(
    ("labels", "options", "named"),
    [
        (np.arange(60), {"stratified": True}, "no class has the 6 .*10/10/80"),
        (np.arange(60) // 5, {"stratified": True}, "largest has 5;"),
        (np.zeros(5, int), {}, "^5 labelled .*10/10/80 .*at least 6$"),
        (np.full(9, -1), {}, "^0 labelled .*10/10/80 .*at least 6$"),
        (np.arange(60) % 2, {"fractions": (0.5, 0.5, 0.0)}, "split 0 .*test"),
    ],
)
def test_splits_of_too_few_nodes_name_the_number_they_need(labels, options, named):
    with pytest.raises(InputError, match=named):
        datasets.random_splits(labels, seed=0, **options)
    datasets.random_splits(np.arange(18) // 6, seed=0, stratified=True)
