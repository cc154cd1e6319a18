"""Several methods on one graph: validation chooses, and differences are paired."""

import json
import re

import numpy as np
import pytest
from commands import answer, output, refusal, settings
from graphs import write_csv

import spgcl
from spgcl.evaluation import hold_out_edges, link_scores
from spgcl.methods import SHORT_LIST
from spgcl.runs.paired import chosen, differences, validation_of

NUM_NODES = 60
SMALL = {"steps": 2, "hidden": 8, "pool_size": 20, "seeds": 8, "hops": 1, "positives": 3, "negatives": 4}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    kinds = np.arange(NUM_NODES) % 3
    pairs = {(node, (node + 3 * step) % NUM_NODES) for step in (1, 2) for node in range(NUM_NODES)}
    write_csv("edges.csv", "source,target", sorted(pairs))
    features = generator.normal(size=(NUM_NODES, 4)) + np.eye(4)[kinds]
    write_csv("features.csv", "id,a,b,c,d", [(n, *row) for n, row in enumerate(features.round(3))])
    write_csv("labels.csv", "id,kind", [(n, "xyz"[kinds[n]]) for n in range(NUM_NODES)])
    return tmp_path


GRAPH = ["edges.csv", "--features", "features.csv", "--threads", 1]


def scores_of(tests, validations):
    pairs = zip(tests, validations, strict=True)
    return {"splits": [{"test": test, "validation": validation} for test, validation in pairs]}


def test_validation_chooses_and_differences_are_split_by_split():
    records = {"a": scores_of([10, 20, 30], [5, 5, 5]), "b": scores_of([40, 10, 60], [4, 4, 6])}
    records["c"] = scores_of([90, 90], [1, 1])
    assert chosen(records) == "a" and validation_of(records["b"]) == pytest.approx(14 / 3)
    gaps = np.array([30, -10, 30])
    assert differences(records, "a") == {
        "b": {"mean": gaps.mean(), "std": gaps.std(), "above": 2, "below": 1, "pairs": 3}
    }


def test_methods_are_compared_with_labels(files, capsys, monkeypatch):
    asked = ["compare", *GRAPH, "--labels", "labels.csv", *settings(**SMALL)]
    record = answer(capsys, *asked, "--methods", "raw,smoothed,spgcl,gcn", "--out", "all")
    rows = {row["method"]: row for row in record["methods"]}
    assert list(rows) == ["raw", "smoothed", "spgcl", "gcn"] and record["metric"] == "accuracy"
    best = max(rows, key=lambda name: rows[name]["validation"])
    assert record["chosen"] == best and "difference" not in rows[best]
    for name, row in rows.items():
        stored = json.loads((files / "all" / name / "eval.json").read_text())
        assert stored["mean"] == row["test"] and len(stored["splits"]) == 10
        if name != best:
            assert row["difference"]["mean"] == pytest.approx(row["test"] - rows[best]["test"])
    assert record["majority"]["mean"] == pytest.approx(100 / 3, abs=5)
    page = (files / "all" / "comparison.html").read_text()
    assert f"differences from {best}" in page
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert [view["name"] for view in data["map"]["views"]] == list(rows)
    monkeypatch.setattr("spgcl.report.write.MOST_MAPPED", 10)
    _, said = output(capsys, *asked, "--methods", "raw,spgcl", "--out", "all")
    assert (
        "spgcl report all/raw all/spgcl" in said
        and '"Maps"' not in (files / "all" / "comparison.html").read_text()
    )
    # What is trained stays; another method joins it.
    before = (files / "all/spgcl/embeddings.parquet").stat().st_mtime_ns
    shown, _ = output(capsys, *asked, "--methods", "spgcl,fastrp", "--out", "all")
    assert (files / "all/spgcl/embeddings.parquet").stat().st_mtime_ns == before
    assert "Validation chooses" in shown and "fastrp" in shown
    assert "hidden" in refusal(capsys, *asked, "--methods", "spgcl", "--out", "all", "--set", "hidden=16")


def test_methods_are_compared_without_labels(files, capsys):
    record = answer(
        capsys,
        *("compare", *GRAPH, *settings(**SMALL), "--hold-out-edges", 0.1, "--retrainings", 2),
        *("--methods", "raw,spgcl"),
    )
    assert record["chosen"] is None and record["graph"]["verdict"]
    for row in record["methods"]:
        assert 0 <= row["link_auc"] <= 100 and row["reliability"]["reliability"] <= 1
        assert {path.name for path in (files / row["run"]).glob("seed-*")} == {"seed-0", "seed-1"}


def test_what_training_did_not_see_is_told_again(files, capsys):
    record = answer(
        capsys, "compare", *GRAPH, *settings(**SMALL), "--methods", "smoothed,spgcl", "--out", "all"
    )
    rows = {row["method"]: row for row in record["methods"]}
    graph = spgcl.Graph.of("edges.csv", "features.csv")
    rest, edges, others = hold_out_edges(graph, 0.1, 0)
    hidden = np.random.default_rng(0).choice(4, 1, replace=False)
    features = graph.features.copy()
    features[:, hidden] = 0
    vectors = spgcl.Embedder("smoothed", hops=1).fit_transform(rest.with_features(features))
    expected = link_scores(vectors, edges, others)["auc"]
    assert rows["smoothed"]["held_out_edges"] == pytest.approx(expected)
    # Without the columns that vectors are compared with.
    assert np.abs(vectors[:, hidden]).max() == 0 and -1 <= rows["smoothed"]["held_out_features"] <= 1
    stored = json.loads((files / "all/spgcl/eval.json").read_text())["held_out"]
    assert stored["edges"] == rows["spgcl"]["held_out_edges"]
    # What was measured is read again: another method joins.
    stored["edges"] = 12.0
    record = json.loads((files / "all/spgcl/eval.json").read_text())
    (files / "all/spgcl/eval.json").write_text(json.dumps({**record, "held_out": stored}))
    shown, _ = output(capsys, "compare", *GRAPH, *settings(**SMALL), "--methods", "spgcl,raw", "--out", "all")
    assert "12.00" in shown and "held-out edges" in shown
    page = (files / "all" / "comparison.html").read_text()
    assert "Without labels" in page and "12.00" in page


def test_a_graph_of_which_nothing_can_be_held_out(files, capsys):
    write_csv("tiny.csv", "source,target", [(0, 1)])
    write_csv("tiny-features.csv", "id,a,b", [(0, 1, 2), (1, 2, 1)])
    asked = ["compare", "tiny.csv", "--features", "tiny-features.csv", "--methods", "raw", "--json"]
    shown, said = output(capsys, *asked)
    assert "held_out_edges" not in json.loads(shown)["methods"][0] and "no edges are held out" in said


def test_what_is_refused(files, capsys):
    asked = ["compare", *GRAPH, "--out", "all"]
    assert "'spgc'" in refusal(capsys, *asked, "--methods", "spgc,raw")
    assert "--set walks=3" in refusal(capsys, *asked, "--methods", "spgcl,raw", "--set", "walks=3")
    assert "gcn" in refusal(capsys, *asked, "--methods", "gcn")
    assert not (files / "all").exists()


def test_a_method_that_fails_is_left_out_with_its_reason(files, capsys, monkeypatch):
    monkeypatch.setattr("spgcl.methods.smoothed.MOST_BYTES", 100)
    record = answer(capsys, "compare", *GRAPH, "--methods", "smoothed,fastrp", "--labels", "labels.csv")
    rows = {row["method"]: row for row in record["methods"]}
    assert "100 allowed" in rows["smoothed"]["left_out"] and record["chosen"] == "fastrp"


def test_the_same_from_python_on_a_graph_in_memory(files):
    graph = spgcl.Graph.of("edges.csv", "features.csv")
    labels = {node: node % 3 for node in range(NUM_NODES)}
    with pytest.warns(spgcl.errors.Note):
        found = spgcl.compare(
            graph, methods=["raw", "spgcl"], labels=labels, out="all", settings=SMALL, splits="5-fold"
        )
    assert found["chosen"] in ("raw", "spgcl") and len(found["spgcl"]) == NUM_NODES
    assert "Validation chooses" in str(found) and "chosen" in repr(found)
    assert found._repr_html_().startswith("<table>")
    assert json.loads((files / "all/raw/eval.json").read_text())["split_source"] == "seeded stratified 5-fold"


def test_the_default_is_a_short_list():
    assert set(SHORT_LIST) <= set(spgcl.METHODS) and len(SHORT_LIST) <= 6
