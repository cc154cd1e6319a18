import warnings
from dataclasses import replace
from functools import partial
from inspect import signature

import networkx
import numpy as np
import pytest
import torch
from graphs import refusing
from made_methods import TINY_POOLS
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from torch_geometric.data import Data

import spgcl
from spgcl.datasets import load, random_splits
from spgcl.engine.device import choose_device, scoring_device, trained_on
from spgcl.errors import InputError, NoFeaturesError
from spgcl.evaluation import score_predictions
from spgcl.face.estimator import Embedder
from spgcl.graph import Graph
from spgcl.methods import METHODS, parameters
from spgcl.runs.options import DEFAULT_METHOD

TINY = {
    **TINY_POOLS,
    "method": "spgcl",
    "steps": 2,
    # Sums over dense and over sparse rows round differently, and Adam makes much of little.
    "normalise_features": False,
    "device": "cpu",
}
NUM_NODES, WIDTH = 40, 5


def make_parts(seed=0):
    """Both directions of every edge, once, and the features."""
    generator = np.random.default_rng(seed)
    pairs = generator.integers(0, NUM_NODES - 1, (2, 90))
    pairs = pairs[:, pairs[0] != pairs[1]]
    edges = np.unique(np.concatenate([pairs, pairs[::-1]], axis=1), axis=1)
    return edges, generator.normal(size=(NUM_NODES, WIDTH)).astype(np.float32)


EDGES, FEATURES = make_parts()


def make_network():
    network = networkx.Graph()
    network.add_nodes_from((node, {"x": row.tolist()}) for node, row in enumerate(FEATURES))
    network.add_edges_from(EDGES.T.tolist())
    return network


def as_adjacency():
    return sparse.csr_array((np.ones(EDGES.shape[1]), EDGES), shape=(NUM_NODES, NUM_NODES))


SOURCES = {
    "graph": lambda: Graph.from_edges(*EDGES, FEATURES),
    "pyg": lambda: Data(x=torch.from_numpy(FEATURES.copy()), edge_index=torch.from_numpy(EDGES.copy())),
    "networkx": lambda: Graph.of(make_network(), feature_attributes=["x"]),
    "scipy": lambda: (as_adjacency(), FEATURES),
    "scipy-sparse-features": lambda: (as_adjacency(), sparse.csr_array(FEATURES)),
    "edge-array": lambda: (EDGES.T, FEATURES),
    "edge-tensor": lambda: (torch.from_numpy(EDGES), FEATURES),
}


@pytest.fixture(scope="module")
def expected():
    return Embedder(**TINY).fit_transform(SOURCES["graph"]())


@pytest.mark.parametrize("kind", SOURCES)
def test_every_form_of_a_graph_gives_the_same_vectors(kind, expected):
    source = SOURCES[kind]()
    model = Embedder(**TINY)
    assert model.fit(source) is model
    vectors = model.transform(source)
    assert vectors.shape == (NUM_NODES, 8) and vectors.dtype == np.float32 and np.isfinite(vectors).all()
    np.testing.assert_array_equal(vectors, expected)
    np.testing.assert_array_equal(Embedder(**TINY).fit_transform(source), vectors)
    assert model.n_features_in_ == WIDTH and len(model.history_.losses) == 2


def test_a_graph_without_features_says_what_to_do():
    for source in (make_network(), EDGES.T, as_adjacency()):
        with pytest.raises(NoFeaturesError):
            Embedder(**TINY).fit(source)


def test_only_the_graph_and_the_name_of_a_data_set_are_used():
    dataset = spgcl.load("csbm-heterophilic")
    model = Embedder(**TINY)
    vectors = model.fit_transform(dataset, dataset.labels)
    assert vectors.shape == (1500, 8)
    np.testing.assert_array_equal(Embedder(**TINY).fit_transform(dataset.graph), vectors)
    with pytest.raises(InputError, match=r"'published'.*'csbm-heterophilic'"):
        Embedder("spgcl", preset="published").fit(dataset)


def test_a_preset_is_taken_by_the_name_of_the_data_set():
    graph = SOURCES["graph"]()
    labels = np.arange(NUM_NODES) % 2
    splits = spgcl.datasets.random_splits(labels, seed=0, count=1)
    dataset = spgcl.Dataset("cora", graph, labels, splits)
    model = Embedder(preset="published", **{**TINY, "pool_size": 30}).fit(dataset)
    # The preset's own values, where nothing else was given.
    assert model.method_.own_positive and model.method_.negative_weight == 100
    assert model.method_.pool_size == 30 and model.method_.learning_rate == 1e-3
    with pytest.raises(InputError, match=r"'published'.*this graph"):
        Embedder(preset="published", **TINY).fit(graph)


def test_parameters_can_be_read_set_and_cloned():
    model = Embedder(seed=4, dropout=0.25, **TINY)
    own = {"preset": None, "seed": 4, "device": "cpu"}
    own |= {"precision": "auto", "deterministic": False}
    assert model.get_params() == own | {"dropout": 0.25} | TINY
    assert model.set_params(seed=5, hidden=16, negatives=7) is model
    copied = clone(model)
    assert copied is not model and copied.get_params() == model.get_params()
    assert copied.get_params()["hidden"] == 16 and not hasattr(copied, "method_")
    graph = SOURCES["graph"]()
    np.testing.assert_array_equal(copied.fit_transform(graph), model.fit_transform(graph))
    assert clone(model).get_params() == model.get_params()
    assert eval(repr(model)).get_params() == model.get_params()


def test_without_a_method_the_default_is_fitted_and_what_it_lacks_names_the_method_that_has_it():
    graph = SOURCES["graph"]()
    model = Embedder(hidden=8)
    assert model.method == DEFAULT_METHOD == signature(spgcl.fit).parameters["method"].default
    vectors = model.fit_transform(graph)
    assert vectors.shape == (NUM_NODES, 8)
    np.testing.assert_array_equal(model.transform(graph), vectors)
    np.testing.assert_array_equal(clone(model).fit_transform(graph), vectors)
    with refusing("'steps'", "'spgcl'"):
        Embedder(steps=3)
    with refusing("'published'", "spgcl"):
        Embedder(preset="published").fit(graph)


def test_setting_a_parameter_changes_the_next_fit():
    graph = SOURCES["graph"]()
    model = Embedder(**TINY)
    first = model.fit_transform(graph)
    assert model.set_params(hidden=4).fit_transform(graph).shape == (NUM_NODES, 4)
    assert not np.array_equal(model.set_params(hidden=8, seed=1).fit_transform(graph), first)
    np.testing.assert_array_equal(model.set_params(seed=0).fit_transform(graph), first)


@pytest.mark.parametrize("change", [partial(Embedder, "spgcl"), Embedder("spgcl").set_params])
def test_an_unknown_parameter_lists_the_known_ones_with_the_nearest(change):
    with pytest.raises(InputError) as caught:
        change(positive=3)
    message = str(caught.value)
    assert "'positive'; did you mean 'positives'" in message and "\n" not in message
    assert "method, preset, seed, device, precision, deterministic, encoder, layers" in message


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"hidden": 0}, "hidden is 0"),
        ({"positives": 20}, "positives is 20"),
        ({"preset": "best"}, "preset 'best'"),
        ({"device": "gpu"}, "device 'gpu'"),
        ({"device": None}, "device None.*auto, cpu"),
    ],
)
def test_a_bad_value_is_refused_when_fitting(parameters, named):
    with pytest.raises(InputError, match=named):
        Embedder(**{**TINY, **parameters}).fit(SOURCES["graph"]())


def test_an_unknown_method_is_refused():
    with pytest.raises(InputError, match=r"'spgc'.*'spgcl'"):
        Embedder("spgc")
    for name in (None, 3, ["spgcl"]):
        with pytest.raises(InputError, match=r"unknown method .*spgcl, mlp"):
            Embedder(method=name)


def grown():
    """Three more nodes: one joined to old ones, one joined to the first new one, one alone."""
    more = np.random.default_rng(9).normal(size=(3, WIDTH)).astype(np.float32)
    added = np.array([[NUM_NODES, NUM_NODES, NUM_NODES + 1], [0, 1, NUM_NODES]])
    return Graph.from_edges(
        *np.concatenate([EDGES, added], axis=1), np.concatenate([FEATURES, more]), node_ids=None
    )


@pytest.mark.parametrize("encoder", ["gcn", "gat", "sage"])
def test_a_grown_graph_gives_vectors_to_old_and_new_nodes(encoder):
    graph = SOURCES["graph"]()
    model = Embedder(encoder=encoder, **TINY).fit(graph)
    weights = {name: value.clone() for name, value in model.method_.state_dict().items()}
    before, after = model.transform(graph), model.transform(grown())
    assert after.shape == (NUM_NODES + 3, 8) and np.isfinite(after).all()
    assert len(np.unique(after[-3:], axis=0)) == 3
    # Two layers see two hops, in a GCN the degrees at their ends too: elsewhere nothing changes.
    near = {0, 1}
    for _ in range(2):
        near |= {int(end) for start, end in EDGES.T if int(start) in near}
    far = sorted(set(range(NUM_NODES)) - near)
    assert far
    np.testing.assert_allclose(after[far], before[far], rtol=1e-5, atol=1e-6)
    assert not np.allclose(after[0], before[0])
    for name, value in model.method_.state_dict().items():
        assert torch.equal(value, weights[name])
    np.testing.assert_array_equal(model.transform(graph), before)


def test_another_width_of_features_is_refused():
    model = Embedder(**TINY).fit(SOURCES["graph"]())
    wider = Graph.from_edges(*EDGES, np.ones((NUM_NODES, WIDTH + 1)))
    with pytest.raises(InputError, match=r"6.*5"):
        model.transform(wider)


def test_transforming_before_fitting_is_refused():
    with pytest.raises(InputError, match="fit"):
        Embedder(**TINY).transform(SOURCES["graph"]())


def test_a_training_that_fails_leaves_what_was_learned_before():
    graph, model = SOURCES["graph"](), Embedder(**TINY)
    with pytest.raises(InputError, match=r"learning_rate \(now 1e\+30\)"):
        model.set_params(learning_rate=1e30).fit(graph)
    with pytest.raises(InputError, match="fit"):
        model.transform(graph)
    before = model.set_params(learning_rate=1e-3).fit(graph).transform(graph)
    with pytest.raises(InputError, match=r"learning_rate \(now 1e\+30\)"):
        model.set_params(learning_rate=1e30).fit(graph)
    np.testing.assert_array_equal(model.transform(graph), before)


def test_the_global_generators_are_left_as_they_were():
    torch.manual_seed(11)
    torch.rand(3)
    np.random.seed(11)  # noqa: NPY002
    before, numbers = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    Embedder(**TINY).fit_transform(SOURCES["graph"]())
    assert torch.equal(torch.get_rng_state(), before)
    assert np.random.get_state()[1].tolist() == numbers  # noqa: NPY002


def test_mps_which_has_no_double_precision_scores_nothing(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device("mps") == torch.device("mps")
    assert scoring_device("mps") == torch.device("cpu")
    assert scoring_device("auto") == choose_device("auto")


def test_devices_are_chosen_by_name():
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert trained_on("cpu") == "cpu" and trained_on("auto") == "auto"
    if not torch.cuda.is_available():
        assert trained_on("cuda") == "auto"
        with pytest.raises(InputError, match="device 'cuda'"):
            choose_device("cuda")


def test_a_supervised_method_is_fitted_with_labels_and_gives_class_scores():
    data = load("csbm-homophilic")
    pair = replace(data, splits=random_splits(data.labels, seed=7, stratified=True, count=2))
    model = Embedder(method="gcn", hidden=4, steps=3)
    # The splits of a data set are taken; a graph without any gets ten.
    assert model.fit_transform(pair, data.labels).shape == (1500, 2 * data.num_classes)
    scores = model.fit_transform(data.graph, list(data.labels))
    assert scores.shape == (1500, 10 * data.num_classes)
    splits = random_splits(data.labels, seed=0, stratified=True)
    assert score_predictions(scores, data.labels, splits).mean > 25
    assert model.transform(load("csbm-heterophilic")).shape == scores.shape


def test_a_supervised_method_without_labels_or_with_too_few_is_refused():
    data = load("csbm-homophilic")
    with pytest.raises(InputError, match=r"gcn .*fit\(graph, y\)"):
        Embedder(method="gcn").fit(data)
    for labels, problem in ((data.labels[:9], r"y .*\(9,\).* 1500"), (np.arange(1500), "the 6 .*10/10/80")):
        with pytest.raises(InputError, match=problem):
            Embedder(method="gcn").fit(data.graph, labels)


def test_labels_are_numbered_as_those_of_files_are():
    graph, labels = load("csbm-homophilic").graph, [5, None, 7] * 500
    model = Embedder(method="gcn", hidden=4, steps=1)
    scores = model.fit_transform(graph, labels)
    assert scores.shape == (1500, 20) and model.classes_ == ("5", "7")
    assert model.labels_.tolist() == [0, -1, 1] * 500
    splits = random_splits(model.labels_, seed=0, stratified=True)
    assert len(score_predictions(scores, model.labels_, splits).splits) == 10
    assert Embedder(method="raw").fit(graph, labels).labels_ is None


def test_minus_one_next_to_one_other_class_is_a_class_with_a_warning():
    data = load("csbm-homophilic")
    sides, model = np.where(np.arange(1500) % 2, -1, 1), Embedder(method="gcn", hidden=4, steps=1)
    with pytest.warns(UserWarning, match="y: -1"):
        model.fit(data.graph, sides)
    assert model.classes_ == ("-1", "1") and model.labels_.tolist() == ((sides + 1) // 2).tolist()


def named(names, directed=False):
    order = [sorted(names).index(name) for name in names]
    return Graph.from_edges(*EDGES, FEATURES[:, order], feature_names=names, directed=directed)


def test_feature_columns_are_matched_by_name():
    model = Embedder(**TINY).fit(named("abcde"))
    assert model.feature_names_in_ == tuple("abcde")
    with pytest.warns(UserWarning, match="order"):
        turned = model.transform(named("cbaed"))
    np.testing.assert_array_equal(turned, model.transform(named("abcde")))
    with pytest.raises(InputError, match=r"'e'.*'f'"):
        model.transform(Graph.from_edges(*EDGES, FEATURES, feature_names="abcdf"))


def test_graphs_of_another_kind_are_refused():
    model = Embedder(**TINY).fit(named("abcde"))
    with pytest.raises(InputError, match=r"directed.* undirected"):
        model.transform(named("abcde", directed=True))
    spectral = Graph.of(EDGES.T, structural="spectral")
    model.fit(spectral)
    assert model.transform(spectral).shape == (spectral.num_nodes, 8)
    with pytest.raises(InputError, match="spectral"):
        model.transform(Graph.of(EDGES.T[: EDGES.shape[1] // 2], structural="spectral"))


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if not method.inductive])
def test_a_transductive_method_embeds_its_own_graph_only(name):
    settings = {"hidden": 4} | ({"steps": 1} if "steps" in parameters(METHODS[name]) else {})
    model = Embedder(name, **settings).fit(SOURCES["graph"]())
    assert model.transform(SOURCES["graph"]()).shape == (NUM_NODES, 4)
    with pytest.raises(InputError, match=name):
        model.transform(grown())


def test_a_graph_that_is_named_like_a_benchmark_has_none_of_its_settings():
    path = networkx.path_graph(8)
    path.graph["name"] = "cora"
    path.name = "cora"
    with pytest.raises(InputError, match=r"'validated' of deepwalk.*this graph"):
        Embedder("deepwalk", preset="validated").fit(path)


def test_a_single_column_that_is_divided_away_is_named():
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], np.arange(1, 5, dtype=np.float32)[:, None])
    with pytest.warns(UserWarning, match="normalise_features=false"):
        Embedder("dgi", steps=1, hidden=4, normalise_features=True).fit(graph)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Embedder("dgi", steps=1, hidden=4, normalise_features=False).fit(graph)
        Embedder("deepwalk", steps=1, hidden=4).fit(graph)


def test_settings_may_be_text_as_on_the_command_line():
    graph = Graph.from_edges([0, 1], [1, 2], np.ones((3, 2), np.float32))
    assert Embedder("dgi", steps="1", hidden="4").fit_transform(graph).shape == (3, 4)


def test_running_out_of_memory_names_the_setting():
    graph = Graph.from_edges([0, 1], [1, 2], np.ones((3, 2), np.float32))
    with pytest.raises(InputError, match=r"negatives$"):
        Embedder("gmi", steps=1, hidden=4, negatives=10**17).fit(graph)


class NodeVectors(TransformerMixin, BaseEstimator):
    """Vectors of some nodes of one graph, as in docs/recipes.md: folds are sets of nodes."""

    def __init__(self, graph=None, embedder=None):
        self.graph, self.embedder = graph, embedder

    def fit(self, nodes, y=None):
        del nodes, y
        self.vectors_ = clone(self.embedder).fit_transform(self.graph)
        return self

    def transform(self, nodes):
        return self.vectors_[np.ravel(nodes)]


def test_a_grid_search_tunes_an_embedder_in_a_pipeline():
    graph, labels = SOURCES["graph"](), np.arange(NUM_NODES) % 2
    vectors = NodeVectors(graph, Embedder(**TINY))
    pipeline = Pipeline([("vectors", vectors), ("classes", LogisticRegression())])
    grid = {"vectors__embedder__hidden": [4, 8], "vectors__embedder__method": ["spgcl"]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(np.arange(NUM_NODES)[:, None], labels)
    assert search.best_params_["vectors__embedder__hidden"] in (4, 8)
    assert search.predict([[3], [4]]).shape == (2,)


def test_an_embedder_is_a_step_that_takes_graphs():
    labels = np.arange(NUM_NODES) % 2
    model = make_pipeline(Embedder(**TINY), LogisticRegression()).fit(SOURCES["graph"](), labels)
    assert model.predict(SOURCES["pyg"]()).shape == (NUM_NODES,)
    assert "Embedder" in repr(model)


@pytest.mark.parametrize("method", ["spgcl", "gcn"])
def test_a_saved_model_embeds_the_same(tmp_path, method):
    settings = TINY if method == "spgcl" else {"steps": 2, "hidden": 4, "device": "cpu"}
    graph = SOURCES["graph"]()
    model = Embedder(seed=np.int64(3), **{**settings, "method": method}).fit(graph, np.arange(NUM_NODES) % 2)
    read = Embedder.load(model.save(tmp_path / "model"))
    assert np.array_equal(read.transform(graph), model.transform(graph))
    assert read.classes_ == model.classes_ and read.get_params()["hidden"] == settings["hidden"]
    # It is a run to the commands, too.
    assert spgcl.open(tmp_path / "model").embed(graph).vectors.shape[0] == NUM_NODES
    with pytest.raises(InputError, match="not empty"):
        model.save(tmp_path / "model")
    with pytest.raises(InputError, match="not fitted"):
        Embedder().save(tmp_path / "other")


def test_a_run_of_the_command_is_loaded_as_a_model(tmp_path):
    graph = SOURCES["graph"]()
    run = spgcl.fit(graph, out=tmp_path / "run", **TINY)
    assert np.array_equal(Embedder.load(run.folder).transform(graph), run.vectors)


def test_representations_are_short():
    dataset = load("csbm-homophilic")
    many = Embedder("spgcl", hidden=8, steps=2, hops=1, positives=3, negatives=4, dropout=0.1, layers=1)
    for value in (dataset, dataset.splits, dataset.graph, many, Embedder()):
        assert len(repr(value)) < 300 and "\n" not in repr(value) and "array" not in repr(value)
    for value in (dataset, dataset.graph, many):
        assert value._repr_html_().startswith("<table>")
