"""Everything a command does, as calls from Python: on files and on graphs in memory."""

import importlib
import json
import re
from dataclasses import replace
from inspect import signature
from pathlib import Path

import networkx
import numpy as np
import pandas
import pytest
from commands import answer, refusal, settings
from graphs import make_graph, refusing, write_csv
from pyarrow import parquet
from typer.main import get_command

import spgcl
from spgcl import Graph
from spgcl.cli import app
from spgcl.evaluation.neighbours import most_similar
from spgcl.face.run import FittedRun
from spgcl.face.vectors import Vectors
from spgcl.io.stored import read_stored_labels, write_stored
from spgcl.runs.kept import READING

SMALL = {"hidden": 8, "pool_size": 20, "seeds": 8, "hops": 1, "positives": 3, "negatives": 4, "steps": 2}
QUICK = {**SMALL, "method": "spgcl", "threads": 1, "device": "cpu"}
NUM_NODES = 60


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    both = range(NUM_NODES)
    pairs = {tuple(sorted((node, (step * node + 3) % NUM_NODES))) for step in (1, 7) for node in both}
    arcs = [(f"p{one}", f"p{other}") for one, other in sorted(pairs) if one != other]
    write_csv("edges.csv", "source,target", [*arcs, *((other, one) for one, other in arcs)])
    generator = np.random.default_rng(0)
    rows = [(f"p{node}", *generator.normal(size=4).round(3)) for node in range(NUM_NODES)]
    write_csv("features.csv", "id,a,b,c,d", rows)
    write_csv("labels.csv", "id,kind", [(f"p{node}", "xyz"[node % 3]) for node in range(NUM_NODES)])
    return tmp_path


def test_a_run_is_that_of_the_command(files, capsys):
    run = spgcl.fit("edges.csv", "features.csv", out="mine", labels="labels.csv", **QUICK)
    given = ["edges.csv", "--features", "features.csv", "--labels", "labels.csv", "--out", "theirs"]
    answer(capsys, "fit", "--method", "spgcl", *given, "--threads", 1, *settings(**SMALL))
    for name in ("embeddings.parquet", "model.safetensors"):
        assert (files / "mine" / name).read_bytes() == (files / "theirs" / name).read_bytes()
    assert run.nodes[:2].tolist() == ["p0", "p1"] and run.vectors.shape == (NUM_NODES, 8)
    assert run["p3"].tolist() == run.vectors[3].tolist() and len(run) == NUM_NODES
    again = spgcl.open("mine")
    assert np.array_equal(again.vectors, run.vectors) and again.record.method == "spgcl"
    assert run.similar("p7", 3) == answer(capsys, "similar", "theirs", "p7", "-k", 3)
    with pytest.warns(spgcl.errors.Note, match="10 seeded"):
        scores = run.evaluate()
    assert {**answer(capsys, "eval", "theirs")} == dict(scores)
    assert json.loads((files / "mine" / "eval.json").read_text()) == scores
    assert "majority class" in str(scores) and f"{scores['mean']:.2f}" in repr(scores)
    embedded = run.embed("edges.csv", "features.csv")
    assert np.array_equal(embedded.vectors, run.vectors)
    assert spgcl.fit("edges.csv", "features.csv", out="bare", **QUICK).report(projection="pca").exists()
    with refusing("--overwrite"):
        spgcl.fit("edges.csv", "features.csv", out="mine", **QUICK)
    assert spgcl.fit("edges.csv", "features.csv", out="mine", resume=True, **QUICK).record.steps == 2


@pytest.fixture
def network():
    generator = np.random.default_rng(0)
    graph = networkx.gnm_random_graph(NUM_NODES, 150, seed=0)
    for node in graph:
        graph.nodes[node]["x"] = generator.normal(size=4).round(3).tolist()
    return networkx.relabel_nodes(graph, {node: f"n{node}" for node in graph})


def test_a_graph_in_memory_goes_all_the_way(network, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    labels = {node: "ab"[index % 2] for index, node in enumerate(network)}
    steps = []
    run = spgcl.fit(
        Graph.of(network, feature_attributes=["x"]),
        out="run",
        labels=labels,
        progress=lambda *done: steps.append(done[0]),
        **QUICK,
    )
    assert steps[-1] == 2 and (tmp_path / "run/graph.npz").exists()
    # Everything is in the folder, which may move; the commands find it there.
    moved = (tmp_path / "run").rename(tmp_path / "moved")
    scores = answer(capsys, "eval", moved, "--threads", 1)
    assert scores["metric"] == "accuracy" and scores["baselines"]["majority"]
    assert len(answer(capsys, "similar", moved, "n3", "n4", "-k", 2)) == 4
    run = spgcl.open(moved)
    grown = network.copy()
    grown.add_node("new", x=[0.1, 0.2, 0.3, 0.4])
    grown.add_edge("new", "n3")
    embedded = run.embed(Graph.of(grown, feature_attributes=["x"]))
    assert embedded.nodes[-1] == "new" and embedded["new"].any() and len(embedded) == NUM_NODES + 1
    assert np.array_equal(run.embed(Graph.of(network, feature_attributes=["x"])).vectors, run.vectors)
    with pytest.warns(spgcl.errors.Note, match="10 seeded"):
        record = run.evaluate([index % 3 for index in range(NUM_NODES)], only="probe")
    assert record["mean"] >= 0 and "baselines" not in record


@pytest.mark.parametrize("form", ["dense", "sparse", "directed", "weighted"])
def test_a_graph_that_is_kept_is_read_as_it_was(form, tmp_path):
    kind = {"sparse": "sparse_features", "dense": "uneven"}.get(form, form)
    graph = make_graph(**{kind: True})
    labels = np.arange(graph.num_nodes) % 3 - 1
    path = tmp_path / "graph.npz"
    names = np.array(["a", "b", "c"])
    write_stored(path, graph, node_labels=labels, class_names=names, metric="macro_f1")
    read = Graph.of(path, directed=graph.directed)
    assert read.digest == graph.digest
    stored = read_stored_labels(path, read)
    assert np.array_equal(stored.labels, labels) and stored.class_names == ("a", "b")
    assert stored.metric == "macro_f1"


def test_named_data_sets_are_not_kept_and_changed_ones_are(tmp_path):
    dataset = spgcl.load("csbm-homophilic")
    run = spgcl.fit(dataset, out=tmp_path / "named", **QUICK)
    assert run.record.graph["source"] == "csbm-homophilic" and not (run.folder / "graph.npz").exists()
    vectors = make_graph(dataset.graph.num_nodes, 5).features
    changed = replace(dataset, graph=dataset.graph.with_features(vectors))
    run = spgcl.fit(changed, out=tmp_path / "changed", **QUICK)
    assert run.record.graph["num_features"] == 5
    scores = run.evaluate(only="probe")
    assert scores["split_source"] == "stored" and len(scores["splits"]) == 10


def test_supervised_methods_take_labels_in_memory(network, tmp_path):
    labels = [index % 2 for index in range(NUM_NODES)]
    graph = Graph.of(network, feature_attributes=["x"])
    with pytest.warns(spgcl.errors.Note):
        run = spgcl.fit(graph, out=tmp_path / "run", method="gcn", labels=labels, steps=2, hidden=8)
        assert run.evaluate()["protocol"] == "predictions"


def test_structural_features_are_counted_again_for_another_graph(network, tmp_path):
    with pytest.warns(spgcl.errors.Note):
        run = spgcl.fit(network, out=tmp_path / "run", structural="degree", hold_out_edges=0.1, **QUICK)
    assert run.evaluate()["link_prediction"]
    with pytest.warns(spgcl.errors.Note):
        assert len(run.embed(networkx.path_graph(5))) == 5


def test_vectors_are_tables_and_files(tmp_path, capsys):
    generator = np.random.default_rng(0)
    vectors = Vectors(generator.normal(size=(20, 3)).astype(np.float32), np.arange(20) + 5)
    frame = vectors.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and frame.loc[7].tolist() == vectors["7"].tolist()
    assert vectors.to_arrow().column_names == ["node", "embedding"]
    for name in ("v.parquet", "v.csv", "v.npy"):
        vectors.save(tmp_path / name)
        read = spgcl.open(tmp_path / name)
        assert np.allclose(read.vectors, vectors.vectors) and read.nodes.tolist() == vectors.nodes.tolist()
        assert len(answer(capsys, "similar", tmp_path / name, 5, "-k", 2)) == 2
    assert parquet.read_schema(tmp_path / "v.parquet").names == ["node", "embedding", "x", "y"]
    with refusing("--overwrite"):
        vectors.save(tmp_path / "v.csv")
    (row, *_), (similarity, *_) = most_similar(vectors.vectors, 2, 4)
    found = vectors.similar([7, 8], 4)
    assert [one["of"] for one in found] == [7] * 4 + [8] * 4
    assert found[0]["node"] == row + 5 and found[0]["similarity"] == pytest.approx(similarity)
    np.save(tmp_path / "bare.npy", vectors.vectors)
    assert spgcl.open(tmp_path / "bare.npy").nodes.tolist() == list(range(20))


def test_what_is_no_run_explains_itself(tmp_path, capsys):
    write_csv(tmp_path / "edges.csv", "source,target", [(0, 1)])
    (tmp_path / "text.pdf").write_text("x")
    np.save(tmp_path / "labels.npy", np.arange(4))
    for name in ("edges.csv", "text.pdf", "labels.npy"):
        assert "holds no embeddings" in refusal(capsys, "similar", tmp_path / name, "0")
    assert "is not a run" in refusal(capsys, "similar", tmp_path, "0")
    with refusing("'9'", "like 0"):
        Vectors(np.ones((2, 2), dtype=np.float32), np.arange(2)).similar(9)


def test_representations_are_short(files):
    run = spgcl.fit("edges.csv", "features.csv", out="mine", **QUICK)
    embedded = run.embed("edges.csv", "features.csv")
    for value in (run, embedded):
        assert len(repr(value)) < 120 and "\n" not in repr(value)
        markup = value._repr_html_()
        assert markup.startswith("<table>") and "60" in markup
    unsafe = spgcl.fit("edges.csv", "features.csv", out="<b>mine", **QUICK)
    assert "<b>" not in unsafe._repr_html_()


def test_retrainings_are_opened_together(files, capsys):
    given = ["edges.csv", "--features", "features.csv", "--labels", "labels.csv", "--out", "many"]
    answer(capsys, "fit", *given, "--method", "spgcl", "--threads", 1, "--retrainings", 2, *settings(**SMALL))
    runs = spgcl.open("many")
    assert [run.record.seed for run in runs] == [0, 1] and len(runs[:1]) == 1 and "2 runs" in repr(runs)
    with pytest.warns(spgcl.errors.Note, match="10 seeded"):
        scores, page = runs.evaluate(only="probe"), runs.report(projection="pca")
    assert scores["std_over"] == "retrainings" and page == Path("many/report.html") and page.exists()
    with refusing("nothing"):
        spgcl.open("nothing")


def test_retrainings_are_one_call(files, network, capsys):
    graph = ["edges.csv", "--features", "features.csv", "--out", "theirs"]
    answer(capsys, "fit", *graph, "--method", "spgcl", "--threads", 1, "--retrainings", 2, *settings(**SMALL))
    runs = spgcl.fit("edges.csv", "features.csv", out="ours", retrainings=2, **QUICK)
    assert [str(run.folder) for run in runs] == ["ours/seed-0", "ours/seed-1"]
    for run in runs:
        for name in ("embeddings.parquet", "model.safetensors"):
            twin = files / "theirs" / run.folder.name / name
            assert (files / run.folder / name).read_bytes() == twin.read_bytes()
    graph = Graph.of(network, feature_attributes=["x"])
    labels = [index % 2 for index in range(NUM_NODES)]
    runs = spgcl.fit(graph, labels=labels, out="kept", seed=3, retrainings=2, **QUICK)
    assert [run.record.seed for run in runs] == [3, 4]
    with pytest.warns(spgcl.errors.Note, match="10 seeded"):
        assert runs.evaluate(only="probe")["std_over"] == "retrainings"
    with refusing("--retrainings 0"):
        spgcl.fit(graph, retrainings=0, **QUICK)


def test_a_graph_is_described_as_the_command_does(files, capsys):
    theirs = answer(capsys, "inspect", "edges.csv", "--features", "features.csv", "--labels", "labels.csv")
    ours = spgcl.inspect("edges.csv", "features.csv", labels="labels.csv")
    assert json.loads(json.dumps(ours)) == theirs and "edge homophily" in str(ours)
    table, frame = pandas.read_csv("edges.csv"), pandas.read_csv("features.csv")
    described = spgcl.inspect(table, frame, labels=pandas.read_csv("labels.csv"))
    assert {**described, "name": ours["name"]} == ours and "60 nodes" in repr(described)
    bare = spgcl.inspect(table)
    assert (
        bare["features"] == 0 and bare["edges"] == ours["edges"] and "<th>property</th>" in bare._repr_html_()
    )


def test_every_option_of_a_command_is_an_argument():
    calls = {"fit": spgcl.fit, "compare": spgcl.compare, "inspect": spgcl.inspect, "eval": FittedRun.evaluate}
    calls |= {"report": FittedRun.report, "embed": FittedRun.embed, "similar": FittedRun.similar}
    # What is only for a terminal, has another form in Python, or is the object itself.
    others = {
        "json",
        "set",
        "steps",
        "run",
        "runs",
        "report",
        "address",
        "engine",
        "workers",
        "out",
        "overwrite",
    }
    for name, call in calls.items():
        options = {one.opts[0].lstrip("-") for one in get_command(app).commands[name].params}
        known = {argument.replace("_", "-") for argument in signature(call).parameters}
        assert options <= known | READING | others, name


def test_the_reference_has_a_call_for_every_command():
    text = (Path(__file__).parents[2] / "docs" / "reference.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (`spgcl\..*) \|$", text, re.MULTILINE))
    commands = {one.name for one in [*app.registered_commands, *app.registered_groups]}
    assert rows.keys() == commands
    for name in re.findall(r"`(spgcl(?:\.\w+)+)", " ".join(rows.values())):
        package, _, attribute = name.rpartition(".")
        try:
            importlib.import_module(name)
        except ImportError:
            assert hasattr(importlib.import_module(package), attribute), name
