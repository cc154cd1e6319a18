"""Every number on the page against the function or the file it comes from."""

import shlex
import tomllib
from importlib.resources import files

import numpy as np
import pytest

from spgcl.cli import run
from spgcl.datasets import Splits, random_splits
from spgcl.datasets.entries import entries
from spgcl.evaluation import (
    class_mixing,
    edge_homophily,
    majority_class,
    predict_first_split,
    probe,
    score_predictions,
    split_half,
    transformed_homophily,
    tuned_probe,
)
from spgcl.methods import METHODS
from spgcl.methods.parts.channels import CHANNELS
from spgcl.report.curves import training
from spgcl.report.homophily import count_pairs, homophily, row_fractions
from spgcl.report.paper import Quoted, paper_figure
from spgcl.report.reliability import without_labels
from spgcl.report.scores import evaluation, first_split
from spgcl.report.single import describe_run
from spgcl.report.summary import headline, repeating_command, summary
from spgcl.report.verdict import verdict, without_training
from spgcl.report.words import judgement, score_rows
from spgcl.report.write import silent
from spgcl.runs.fit import DECIDING
from spgcl.runs.record import read_run


def items_of(section, kind):
    return [item for item in section["items"] if item["kind"] == kind]


def facts_of(section):
    return {name: value for item in items_of(section, "facts") for name, value in item["pairs"]}


def test_the_summary_repeats_the_record(fitted):
    record = read_run(fitted)
    part = summary(fitted, record, ("two edges dropped",))
    facts = {**facts_of(part), **headline(record)}
    assert facts["Graph"].startswith("edges: 60 nodes, ") and facts["Graph"].endswith(" edges, 3 features")
    assert facts["Method"] == "spgcl" and facts["Training"] == "6 steps"
    assert f"{record.seconds['train']:.2f} s train" in facts["Time"]
    assert facts["Peak memory"] == f"{record.peak_memory_mib:,.0f} MiB"
    assert facts["Device"] == "cpu, 1 thread" and record.versions["torch"] in facts["Versions"]
    assert "two edges dropped" in part["text"]
    settings = {row[0]: row[1:] for row in items_of(part, "table")[0]["rows"]}
    assert settings["hidden"] == ["8", "1536"] and settings["positives"] == ["5", ""]


def test_scores_state_what_their_deviation_is_over():
    splits = [{"split": 0, "start": start} for start in range(10)]
    main = {"mean": 50.0, "std": 1.0, "std_over": "probe starts", "metric": "roc_auc", "splits": splits}
    knn = {"mean": 40.0, "std": 0.0, "std_over": "splits"}
    record = {**main, "protocol": "paper", "knn": knn, "link_prediction": {"average_precision": 9.999}}
    assert score_rows(record) == [
        ["paper's probe", "ROC-AUC", "50.00", "1.00", "10 probe starts"],
        ["k-NN", "ROC-AUC", "40.00", "-", "1 split"],
        ["link prediction", "average precision", "10.00", "-", ""],
    ]
    again = {**record, "std_over": "retrainings", "retrainings": [{}, {}, {}]}
    assert score_rows(again)[0][-1] == "3 retrainings"


@pytest.mark.parametrize(
    ("score", "above", "below"),
    [
        (30.0, [], []),
        (29.0, [], []),
        (45.0, ["majority class (30.00)"], ["raw features (50.00)", "smoothed features (60.00)"]),
        (55.0, ["majority class (30.00)", "raw features (50.00)"], ["smoothed features (60.00)"]),
        (65.0, ["majority class (30.00)", "raw features (50.00)", "smoothed features (60.00)"], []),
    ],
)
def test_a_score_is_judged_by_what_takes_no_training(score, above, below):
    rows = {"majority": {"mean": 30.0}, "raw": {"mean": 50.0}, "smoothed": {"mean": 60.0}, "untrained": {}}
    (words,) = judgement({"mean": score, "metric": "accuracy", "baselines": rows})
    assert words.startswith("Not above the majority class") is (score <= 30)
    found = words.partition(", not above ")
    assert [part for part in above if part in found[0]] == above
    assert [part for part in below if part in found[2]] == below
    assert not judgement({"mean": score, "metric": "accuracy"})
    left_out = {"majority": {"mean": 30.0}, "raw": {"left_out": "too large"}}
    assert "raw" not in judgement({"mean": score, "metric": "accuracy", "baselines": left_out})[0]


def test_the_majority_class_is_that_of_the_training_nodes():
    labels = np.array([0, 0, 1, 1, 1, 0, 2, 1, -1])
    train = np.array([[1, 1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0, 0, 0, 0]], dtype=bool)
    test = np.array([[0, 0, 0, 0, 1, 1, 1, 1, 0], [0, 0, 0, 0, 1, 1, 1, 1, 0]], dtype=bool)
    validation = np.array([[0, 0, 0, 1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0, 0, 0]], dtype=bool)
    scores = majority_class(labels, Splits(train, validation, test, "own"))
    assert [(one.validation, one.test) for one in scores.splits] == [(0, 25), (0, 50)]


def test_the_command_of_the_summary_makes_the_same_run(people, tmp_path, capsys):
    out = tmp_path / "a run's"
    options = ["--set", "hidden=8", "--set", "dropout=0.25", "--set", "batch_norm=none", "--observe", "2"]
    options += ["--precision", "float32", "--deterministic", "--format", "csv"]
    options += ["--method", "spgcl", "--steps", "4"]
    arguments = [*people.graph, *people.labels, "--seed", "3", "--hold-out-edges", "0.1"]
    assert run(["fit", *arguments, *options, "--id", "id", "--threads", "1", "--out", str(out)]) == 0
    program, *words = shlex.split(repeating_command(out, read_run(out)))
    assert program == "spgcl" and run(words) == 0
    again = out.with_name(f"{out.name}-again")
    for name in ("embeddings.csv", "model.safetensors", "held_out_edges.npz"):
        assert (again / name).read_bytes() == (out / name).read_bytes()
    # Whatever decides a run is in its command, and whatever is recorded of the graph.
    for name in (*DECIDING, "settings", "graph", "supervision", "history", "preset"):
        assert getattr(read_run(again), name) == getattr(read_run(out), name)


def test_the_command_names_preset_format_and_direction(fitted):
    record = read_run(fitted)
    record.preset, record.embedding_format, record.dataset = "validated", "npy", "cora"
    record.graph = {**record.graph, "options": {"directed": True, "structural": "degree"}, "labels": None}
    words = shlex.split(repeating_command(fitted, record))
    for option in ("--directed", "--structural degree", "--preset validated", "--format npy"):
        assert option in " ".join(words)
    assert "--labels" not in words and words[-1] == f"{fitted}-again"


def test_training_shows_the_loss_and_every_recorded_curve(fitted):
    record = read_run(fitted)
    charts = {item["title"]: item["series"] for item in items_of(training(record), "lines")}
    (loss,) = charts["Loss of spgcl"]
    assert loss["x"] == [1, 2, 3, 4, 5, 6]
    assert loss["y"] == pytest.approx(record.history["loss"], rel=1e-5)
    points = record.history["observations"]
    (curve,) = charts["Homophily of the transformed graph"]
    assert curve["x"] == [0, 2, 4, 6]
    assert curve["y"] == pytest.approx([point["transformed_homophily"] for point in points], rel=1e-5)
    assert [part["name"] for part in charts["Weight norm"]] == ["layer 1", "layer 2"]
    drawn = {name for name in points[-1] if name != "step"}
    assert len(drawn) == sum(len(series) for series in charts.values()) - 1
    record.history = {"loss": record.history["loss"], "observations": []}
    assert "--observe" in training(record)["text"]
    record.history = {}
    assert training(record)["text"] == "spgcl has nothing to train."


def test_long_curves_keep_their_ends(fitted):
    record = read_run(fitted)
    record.history = {"loss": list(np.linspace(5, 1, 50_000)), "observations": []}
    (item,) = items_of(training(record), "lines")
    (series,) = item["series"]
    assert len(series["x"]) == 2000 and series["x"][0] == 1 and series["x"][-1] == 50_000


def test_curves_say_which_direction_is_good(fitted):
    better = {item["title"]: item["better"] for item in items_of(training(read_run(fitted)), "lines")}
    assert better["Loss of spgcl"] == better["Overlap: selected pairs that were selected before"]
    assert better["Loss of spgcl"] != better["Homophily of the transformed graph"]
    logarithmic = {
        item["title"] for item in items_of(training(read_run(fitted)), "lines") if item["logarithmic"]
    }
    assert logarithmic == {"Loss of spgcl"}


def fractions_of_pairs(rows, columns, num_classes):
    """Counted one by one."""
    counts = np.zeros((num_classes, num_classes))
    for row, column in zip(rows, columns, strict=True):
        if row >= 0 and column >= 0:
            counts[row, column] += 1
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)


def test_pairs_of_classes_are_counted_one_by_one():
    rows, columns = np.random.default_rng(0).integers(-1, 3, (2, 120))
    expected = fractions_of_pairs(rows, columns, 4)
    np.testing.assert_allclose(row_fractions(count_pairs(rows, columns, 4)), expected)


def test_homophily_compares_the_graph_with_the_transformed_one(make_material):
    material = make_material(class_names=("a", "b", "c"))
    part = homophily(material)
    (chart,) = items_of(part, "strips")
    means = {row["name"]: row["mean"] for row in chart["rows"]}
    graph, labels = material.graph, material.labels
    nearest = material.nearest[0][:, :5]
    assert means == {
        "original graph": pytest.approx(100 * edge_homophily(graph, labels), abs=1e-3),
        "most similar by smoothed features": pytest.approx(
            100 * transformed_homophily(graph, labels).homophily, abs=1e-3
        ),
        "most similar by embedding": pytest.approx(
            100 * np.mean(labels[nearest] == labels[:, None]), abs=1e-3
        ),
    }
    original, similar = items_of(part, "matrix")
    assert original["names"] == ["a", "b", "c"]
    np.testing.assert_allclose(original["values"], class_mixing(graph, labels), atol=1e-4)
    expected = fractions_of_pairs(np.repeat(labels, 5), labels[nearest].ravel(), 3)
    np.testing.assert_allclose(similar["values"], expected, atol=1e-4)
    (inside,) = items_of(part, "table")
    assert inside["rows"][1] == ["b", *[f"{100 * m['values'][1][1]:.1f}" for m in (original, similar)]]


def test_without_labels_the_sections_ask_for_them(make_material):
    material = make_material(labelled=False)
    assert "--labels" in homophily(material)["items"][0]["text"]
    assert "--labels" in evaluation(material, None)["items"][0]["text"]
    part = verdict(material, {}, ["Edges help.", "Try auto."])
    assert part["text"] == "Edges help." and [item["kind"] for item in part["items"]] == ["facts"]
    linked = make_material(labelled=False, evaluation={"link_prediction": {"auc": 71.5}})
    (scores,) = items_of(evaluation(linked, None), "table")
    assert scores["rows"] == [["link prediction", "auc", "71.50", "-", ""]]


def scored(make_material, protocol="paper", **more):
    material = make_material(90, **more)
    splits = random_splits(material.labels, seed=0, count=more.pop("count", 3), stratified=True)
    score = probe if protocol == "paper" else tuned_probe
    record = {**score(material.vectors, material.labels, splits).as_record(), "protocol": protocol}
    object.__setattr__(material, "splits", splits)
    object.__setattr__(material, "evaluation", {**record, "split_source": splits.source})
    return material


@pytest.mark.parametrize("count", [1, 3], ids=["one split", "three splits"])
def test_predictions_of_the_first_split_are_those_that_were_scored(make_material, count):
    material = make_material(90)
    splits = random_splits(material.labels, seed=0, count=count, stratified=True)
    nodes, predicted = predict_first_split(material.vectors, material.labels, splits)
    first = probe(material.vectors, material.labels, splits).splits[0]
    np.testing.assert_array_equal(nodes, np.flatnonzero(splits.test[0]))
    assert 100 * np.mean(material.labels[nodes] == predicted) == pytest.approx(first.test)


def verdict_of(material):
    return verdict(material, without_training(material, silent), ["The signal."])


def test_the_verdict_shows_splits_and_rows_without_training_and_evaluation_the_confusion(make_material):
    material = scored(make_material, "tuned")
    part = verdict_of(material)
    (chart,) = items_of(part, "strips")
    own, *others = chart["rows"]
    assert f"{material.evaluation['mean']:.2f}" in part["text"]
    assert own["role"] == "own" and len(own["values"]) == 3
    assert own["values"] == pytest.approx([s["test"] for s in material.evaluation["splits"]], rel=1e-5)
    assert [row["name"] for row in others] == [
        "majority class",
        "raw features, no training",
        "smoothed features, no training",
        "encoder before training",
    ]
    # The features of this graph are the very vectors: the first row is the run's own score.
    assert others[1]["mean"] == own["mean"]
    (matrix,) = items_of(evaluation(material, first_split(material)), "matrix")
    nodes, predicted = predict_first_split(material.vectors, material.labels, material.splits)
    expected = fractions_of_pairs(material.labels[nodes], predicted, 3)
    np.testing.assert_allclose(matrix["values"], expected, atol=1e-4)


def test_rows_without_training_are_computed_once_for_a_task(make_material):
    material = scored(make_material, "tuned")
    stages = []
    first = without_training(material, stages.append)
    assert stages == ["scoring raw", "scoring smoothed", "scoring untrained"]
    assert without_training(material, stages.append) == first and len(stages) == 3
    object.__setattr__(material, "labels", (material.labels + 1) % 3)
    assert without_training(material, stages.append).keys() == first.keys() and len(stages) == 6
    material.run.method = "raw"
    object.__setattr__(material, "labels", material.labels[::-1].copy())
    assert list(without_training(material, stages.append)) == ["majority", "smoothed", "untrained"]


def test_a_run_without_training_has_no_section_about_it_and_no_encoder_beside_it(make_material):
    material = scored(make_material, "tuned")
    assert "training" in sections_of(material) and "untrained" in without_training(material, silent)
    material.run.method, material.run.settings = "raw", {}
    assert "training" not in sections_of(material) and "untrained" not in without_training(material, silent)
    material.run.seconds = {"prepare": 1.0, "train": 0.0, "embed": 2.0}
    assert headline(material.run)["Time"] == "1.00 s prepare + 2.00 s embed"


def sections_of(material):
    return [part["id"] for part in describe_run(material, say=silent, projection="pca")["sections"]]


def test_without_any_score_the_evaluation_says_what_to_give(make_material):
    material = make_material(labelled=False)
    object.__setattr__(material, "evaluation", {"verdict": ["The signal."], "channels": {}})
    part = evaluation(material, None)
    assert items_of(part, "table") == [] and "--labels" in items_of(part, "text")[0]["text"]


def test_a_row_that_does_not_fit_into_memory_is_left_out_with_its_reason(make_material, monkeypatch):
    monkeypatch.setattr("spgcl.methods.smoothed.MOST_BYTES", 100)
    part = verdict_of(scored(make_material, "tuned"))
    names = [row["name"] for row in items_of(part, "strips")[0]["rows"][1:]]
    assert names == ["majority class", "encoder before training"]
    reasons = [item["text"] for item in items_of(part, "text")]
    assert len(reasons) == 2 and all("100 allowed" in words for words in reasons)


def test_a_supervised_run_is_shown_by_its_own_predictions(make_material):
    material = make_material(90)
    splits = random_splits(material.labels, seed=0, count=2, stratified=True)
    scores = np.random.default_rng(1).standard_normal((90, 2 * 3)).astype(np.float32)
    record = {**score_predictions(scores, material.labels, splits).as_record(), "split_source": "seeded"}
    material.run.method = "gcn"
    for name, value in {"vectors": scores, "splits": splits, "evaluation": record}.items():
        object.__setattr__(material, name, value)
    part = evaluation(material, first_split(material))
    (matrix,) = items_of(part, "matrix")
    nodes = np.flatnonzero(splits.test[0])
    expected = fractions_of_pairs(material.labels[nodes], scores[nodes, :3].argmax(axis=1), 3)
    np.testing.assert_allclose(matrix["values"], expected, atol=1e-4)
    assert items_of(part, "table")[0]["rows"][0][0] == "own predictions"


def test_the_papers_figures_are_of_graphs_and_methods_known_here():
    assert paper_figure("spgcl", "cora") == Quoted(83.16, 0.13, 1)
    assert paper_figure("spgcl", "genius") == Quoted(90.06, 0.18, 2)
    assert paper_figure("selene", "pubmed") is None and paper_figure("spgcl", "csbm-heterophilic") is None
    tables = tomllib.loads(files("spgcl.report").joinpath("paper.toml").read_text())
    methods = [set(table) for table in tables.values()]
    assert methods[0] == methods[1] <= set(METHODS)
    graphs = {name for table in tables.values() for row in table.values() for name in row}
    assert graphs <= set(entries()) and graphs == {
        name for table in tables.values() for name in table["spgcl"]
    }


def test_the_papers_figure_stands_beside_the_run_on_its_graph_only(make_material):
    material = scored(make_material, "tuned")
    material.run.dataset = material.run.graph["source"] = "cora"
    material.run.method = "dgi"
    rows = items_of(verdict_of(material), "strips")[0]["rows"]
    quoted = {row["name"]: row["text"] for row in rows if row["role"] == "quoted"}
    assert quoted == {
        "dgi, table 1 of the paper": "82.34 ± 0.71",
        "spgcl, table 1 of the paper": "83.16 ± 0.13",
    }
    material.run.graph["source"] = "/somewhere/cora.csv"
    rows = items_of(verdict_of(material), "strips")[0]["rows"]
    assert not [row for row in rows if row["role"] == "quoted"]


def test_the_signal_of_the_graph_is_shown_by_channel(make_material):
    material = make_material(60)
    measured = without_labels(split_half(material.graph))
    strips, _, numbers = measured["items"]
    assert [row["name"] for row in strips["rows"]] == list(CHANNELS)
    own = split_half(material.graph)["channels"]["own"]
    assert strips["rows"][0]["mean"] == pytest.approx(own["reliability"], rel=1e-4)
    assert numbers["rows"][0][1] == f"{own['reliability']:.2f}"
    assert measured["text"] == " ".join(split_half(material.graph)["verdict"])
    assert not without_labels({"channels": {}, "verdict": ["As recorded."]})["items"]
