"""What is measured of a run: sizes of drawn graphs, both ends of training, scores by split."""

from statistics import fmean

import pytest
from graphs import CPU

from spgcl.datasets.entries import entries
from spgcl.experiments.measures import measured
from spgcl.experiments.plan import Run

SMALL = {"steps": 4, "hidden": 8, "pool_size": 32, "seeds": 8, "hops": 1}


def run(measure, graph="csbm-homophilic", method="spgcl", given=SMALL, **options):
    return measured(Run("a row", measure, graph, method, None, given, 0, options), CPU)


def test_memory_is_measured_on_a_drawn_graph_of_the_size_of_one_that_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("SPGCL_DATA", str(tmp_path))
    line = run("memory", "cora")
    paper = entries()["cora"].paper
    assert line["synthetic"]
    assert line["nodes"] == paper["nodes"]
    assert line["edges"] == pytest.approx(paper["edges"], rel=0.05)
    assert line["peak_mib"] > 0 and line["ms_per_step"] > 0


def test_scores_keep_every_split():
    line = run("scores")
    for scores in line["scores"].values():
        assert len(scores["splits"]) == 10
        assert scores["test"] == pytest.approx(fmean(scores["splits"]), abs=0.01)
    assert set(line["scores"]) == {"paper", "tuned"}
    assert line["observed"]["weight_norm_1"] > 0
    assert line["settings"]["hidden"] == 8


def test_only_the_probes_that_are_asked_for():
    assert set(run("scores", probes=["tuned"])["scores"]) == {"tuned"}
    supervised = run("scores", method="mlp", given={"steps": 2, "hidden": 4})
    assert set(supervised["scores"]) == {"predictions"}


def test_random_tenths_say_what_they_are():
    assert run("scores", probes=["paper"], tenths=True)["splits"] == "seeded 10/10/80"


def test_curves_are_observed_at_the_start_and_at_the_end_unless_more_often():
    assert [point["step"] for point in run("curves")["observations"]] == [0, 4]
    often = run("curves", every=1)["observations"]
    assert [point["step"] for point in often] == [0, 1, 2, 3, 4]
    assert all(0 <= point["transformed_homophily"] <= 1 for point in often)
    assert "node_cover_ratio" in often[-1]


def test_the_graph_alone_needs_no_method():
    line = run("statistics", method="", given={})
    assert line["figures"]["nodes"]["loaded"] == 1500
    assert line["settings"] == {}
