import tomllib
from importlib.resources import files

import pytest

from spgcl.datasets import names
from spgcl.errors import InputError
from spgcl.methods import METHODS, create, parameters, resolved_settings
from spgcl.methods.parameters import checked
from spgcl.methods.presets import PRESETS, preset

# What the authors' code does on every graph.
PUBLISHED_EVERYWHERE = {
    "encoder": "gcn",
    "layers": 2,
    "activation": "prelu",
    "batch_norm_rows": "all",
    "fan_out": 0,
    "head_input": "relu",
    "pool": "lists",
    "anchors": "pool",
    "own_positive": True,
    "negatives_from": "pool",
}
PUBLISHED = {
    "cora": {
        "hidden": 1024,
        "dropout": 0.3,
        "batch_norm": "none",
        "normalise_features": False,
        "head_activation": "prelu",
        "seeds": 256,
        "hops": 2,
        "pool_size": 256,
        "positives": 5,
        "negatives": 100,
        "negative_weight": 100.0,
        "steps": 500,
        "learning_rate": 1e-3,
        "weight_decay": 1e-4,
    },
    "citeseer": {
        "hidden": 1024,
        "dropout": 0.5,
        "batch_norm": "none",
        "normalise_features": False,
        "head_activation": "relu",
        "seeds": 128,
        "hops": 2,
        "pool_size": 256,
        "positives": 5,
        "negatives": 200,
        "negative_weight": 200.0,
        "steps": 600,
        "learning_rate": 9e-4,
        "weight_decay": 1e-5,
    },
    "twitch-de": {
        "hidden": 1024,
        "dropout": 0.2,
        "batch_norm": "affine",
        "normalise_features": True,
        "head_activation": "prelu",
        "seeds": 32,
        "hops": 4,
        "pool_size": 700,
        "positives": 6,
        "negatives": 100,
        "negative_weight": 100.0,
        "steps": 500,
        "learning_rate": 1.1e-3,
        "weight_decay": 0.0,
    },
}
# What the text, its equations and its table of hyper-parameters say.
PAPER_EVERYWHERE = {
    "encoder": "gcn",
    "layers": 2,
    "activation": "relu",
    "head_input": "plain",
    "pool": "set",
    "pool_size": 0,
    "anchors": "seeds",
    "own_positive": True,
    "negatives_from": "all",
    "negative_weight": 1.0,
}
PAPER = {
    "citeseer": {"batch_norm": "none", "seeds": 256, "hops": 2, "positives": 10, "negatives": 200},
    "actor": {"batch_norm": "plain", "seeds": 512, "hops": 4, "positives": 10, "negatives": 100},
    "genius": {"batch_norm": "plain", "seeds": 256, "hops": 3, "hidden": 512, "learning_rate": 0.001},
}
# Graphs on which the authors' code normalises features, and those on which it uses batch norm.
NORMALISED = {
    "pubmed",
    "wikics",
    "amazon-computers",
    "amazon-photo",
    "chameleon",
    "squirrel",
    "actor",
    "twitch-de",
}


def table(name):
    return tomllib.loads((files("spgcl.methods.presets") / f"{name}.toml").read_text(encoding="utf-8"))


ROWS = [
    (name, method, graph)
    for name in PRESETS
    for method, graphs in table(name).items()
    for graph in graphs
    if graph != "common"
]


@pytest.mark.parametrize("graph", PUBLISHED)
def test_published_is_what_the_authors_code_does(graph):
    settings = resolved_settings("spgcl", "published", graph, {})
    assert settings == PUBLISHED_EVERYWHERE | PUBLISHED[graph]


def test_published_knows_where_the_authors_normalise_and_sum():
    graphs = [graph for name, method, graph in ROWS if (name, method) == ("published", "spgcl")]
    assert len(graphs) == 12
    for graph in graphs:
        settings = resolved_settings("spgcl", "published", graph, {})
        assert settings["normalise_features"] == (graph in NORMALISED)
        assert settings["batch_norm"] == ("affine" if graph in NORMALISED else "none")
        # The code adds over the negatives where the paper averages.
        assert settings["negative_weight"] == settings["negatives"]
        relu = graph in ("citeseer", "pubmed", "chameleon")
        assert settings["head_activation"] == ("relu" if relu else "prelu")


@pytest.mark.parametrize("graph", PAPER)
def test_paper_is_what_the_text_says(graph):
    settings = resolved_settings("spgcl", "paper", graph, {})
    assert settings | PAPER_EVERYWHERE | PAPER[graph] == settings


def test_paper_covers_its_fourteen_graphs():
    assert len([row for row in ROWS if row[0] == "paper"]) == 14


@pytest.mark.parametrize("row", ROWS, ids="-".join)
def test_every_row_is_valid_and_names_a_known_graph(row):
    name, method, graph = row
    assert graph in names()
    values = preset(name, method, graph)
    assert checked(METHODS[method], values) == values
    settings = resolved_settings(method, name, graph, {"hidden": 4})
    task = (2, 3) if METHODS[method].supervised else None
    create(method, 3, task=task, seed=0, settings=settings)


def test_validated_lists_only_what_differs_from_the_defaults():
    for method, graphs in table("validated").items():
        known = parameters(METHODS[method])
        for graph, values in graphs.items():
            for name, value in values.items():
                assert value != known[name].default, f"{graph}.{name} repeats the default"


def test_given_settings_come_before_the_preset_and_it_before_the_defaults():
    settings = resolved_settings("spgcl", "published", "cora", {"dropout": "0.1"})
    assert (settings["dropout"], settings["pool_size"]) == (0.1, 256)
    defaults = resolved_settings("spgcl", None, "cora", {})
    assert defaults == {name: found.default for name, found in parameters(METHODS["spgcl"]).items()}


@pytest.mark.parametrize("graph", ["roman-empire", "", "common"])
def test_a_graph_the_preset_does_not_know_is_refused(graph):
    with pytest.raises(InputError) as caught:
        resolved_settings("spgcl", "published", graph, {})
    message = str(caught.value)
    named = repr(graph) if graph else "this graph"
    assert f"preset 'published' of spgcl has no setting for {named}, only for cora, citeseer" in message
    assert message.endswith("leave --preset out to use the defaults") and "common," not in message


def test_a_method_without_the_preset_says_so_and_offers_those_it_has():
    with pytest.raises(InputError) as caught:
        resolved_settings("graphcl", "published", "cora", {})
    assert str(caught.value) == (
        "graphcl has no preset 'published'; choose 'validated', or leave --preset out to use the defaults"
    )
    with pytest.raises(InputError, match=r"^raw .*'paper'; add --method spgcl, or leave --preset out"):
        resolved_settings("raw", "paper", "cora", {})


def test_an_unknown_preset_offers_the_nearest():
    with pytest.raises(InputError, match=r"'publishd'.*'published'"):
        resolved_settings("spgcl", "publishd", "cora", {})


def test_a_changed_result_does_not_change_the_preset():
    preset("published", "spgcl", "cora")["hidden"] = 1
    assert preset("published", "spgcl", "cora")["hidden"] == 1024
