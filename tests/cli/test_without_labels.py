"""What commands say of a graph and a run without labels."""

import json

import numpy as np
import pytest
from commands import answer, output
from graphs import write_csv

from spgcl.evaluation import split_half
from spgcl.io import read_graph
from spgcl.methods.parts.channels import CHANNELS


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The options of a graph of 80 nodes in two groups, whose features and edges follow the groups."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    ends = [(node, int(other) * 2 + node % 2) for node in range(80) for other in generator.integers(0, 40, 3)]
    write_csv("edges.csv", "a,b", [(one, other) for one, other in ends if one != other])
    rows = generator.normal(size=(80, 6)) + 2 * (np.arange(80) % 2)[:, None]
    write_csv("features.csv", "id,a,b,c,d,e,f", [(node, *row) for node, row in enumerate(rows.round(4))])
    return ["edges.csv", "--features", "features.csv"]


def test_inspect_says_where_the_signal_is(own, capsys):
    record = answer(capsys, "inspect", *own)["without_labels"]
    assert record == split_half(read_graph("edges.csv", features="features.csv"))
    shown, _ = output(capsys, "inspect", *own)
    assert all(name in shown for name in CHANNELS) and record["verdict"][0] in shown


def test_a_run_of_auto_records_what_it_found_and_eval_repeats_it(own, capsys, tmp_path):
    shown, _ = output(capsys, "fit", *own, "--method", "auto", "--out", "run")
    findings = json.loads((tmp_path / "run/run.json").read_text())["findings"]
    assert all(sentence in shown for sentence in findings["verdict"])
    record = answer(capsys, "eval", "run")
    assert {name: record[name] for name in findings} == findings
    assert 0 < record["vectors"]["reliability"] <= 1 and "mean" not in record
    assert json.loads((tmp_path / "run/eval.json").read_text()) == record


@pytest.mark.parametrize("method", ["spgcl", "fastrp"])
def test_runs_of_other_methods_are_measured(own, capsys, method):
    short = ["--steps", 2] if method == "spgcl" else []
    fit = ["fit", *own, "--method", method, "--out", "run", "--set", "hidden=8", "--hold-out-edges", "0.1"]
    answer(capsys, *fit, *short)
    record = answer(capsys, "eval", "run")
    assert set(record["channels"]) == set(CHANNELS) and record["link_prediction"]
    assert (record["vectors"] is None) == (method == "fastrp")
    shown, _ = output(capsys, "eval", "run")
    assert record["verdict"][0] in shown
