"""SP-GCL's defaults for large graphs: which graphs have them, what overrides them, what is recorded."""

import shlex

import numpy as np
import pytest
from graphs import make_graph

import spgcl
from spgcl.datasets.entries import entries
from spgcl.methods import METHODS, parameters, resolved_settings
from spgcl.methods import spgcl as module
from spgcl.report.summary import repeating_command

TARGET = (200_000, 2_000_000)
SMALL = {"hidden": 8, "pool_size": 20, "seeds": 8, "hops": 1, "positives": 3, "negatives": 4, "steps": 2}


@pytest.fixture
def everything_is_large(monkeypatch):
    monkeypatch.setattr(module, "LARGE_NODES", 10)


def test_only_the_two_largest_benchmark_graphs_are_large():
    sizes = {name: (known.nodes, known.paper.get("edges", 0)) for name, known in entries().items()}
    large = {name for name, size in sizes.items() if METHODS["spgcl"].sized_defaults(*size)}
    assert large == {"twitch-gamers", "genius"}
    for name, method in METHODS.items():
        assert name == "spgcl" or method.sized_defaults(*TARGET) == {}


@pytest.mark.parametrize("size", [TARGET, (60_000, 0), (10, 2_000_000)])
def test_many_nodes_or_edges_bound_the_neighbourhoods(size):
    found = resolved_settings("spgcl", None, "", {}, size)
    usual = resolved_settings("spgcl", None, "", {})
    assert found == {**usual, "batch_norm_rows": "pool", "fan_out": 10}


def test_the_width_is_halved_where_embeddings_would_fill_memory():
    widths = [resolved_settings("spgcl", None, "", {}, (10**power, 0))["hidden"] for power in range(3, 10)]
    full = parameters(METHODS["spgcl"])["hidden"].default
    assert widths == [full] * 3 + [full // 2] * 4


def test_named_settings_and_presets_override():
    given = {"fan_out": 3, "batch_norm_rows": "all", "hidden": 64}
    assert given.items() <= resolved_settings("spgcl", None, "", given, TARGET).items()
    preset = resolved_settings("spgcl", "published", "cora", {}, TARGET)
    assert preset == resolved_settings("spgcl", "published", "cora", {})


def test_a_run_records_them_and_its_command_repeats_it(everything_is_large, tmp_path, notes):
    graph = make_graph(60, num_edges=300)
    run = spgcl.fit(graph, out=tmp_path / "a", method="spgcl", device="cpu", threads=1, **SMALL)
    assert (run.record.settings["fan_out"], run.record.settings["batch_norm_rows"]) == (10, "pool")
    assert sum("fan_out=10" in text for text in notes) == 1
    again = spgcl.fit(graph, out=tmp_path / "b", method="spgcl", device="cpu", threads=1, **SMALL)
    assert np.array_equal(run.vectors, again.vectors)
    named = {**SMALL, "fan_out": 0, "batch_norm_rows": "all"}
    other = spgcl.fit(graph, out=tmp_path / "c", method="spgcl", device="cpu", threads=1, **named)
    assert not np.array_equal(run.vectors, other.vectors)
    assert sum("fan_out=10" in text for text in notes) == 2
    words = shlex.split(repeating_command(tmp_path / "c", other.record))
    assert {"fan_out=0", "batch_norm_rows=all"} <= set(words)
    assert "fan_out=10" not in shlex.split(repeating_command(tmp_path / "a", run.record))


def test_the_estimator_has_them_too(everything_is_large):
    graph = make_graph(60, num_edges=300)
    with pytest.warns(spgcl.errors.Note, match="fan_out=10"):
        fitted = spgcl.Embedder("spgcl", device="cpu", **SMALL).fit(graph)
    assert fitted.method_.fan_out == 10 and not fitted.method_.whole_graph
