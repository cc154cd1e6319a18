"""Tables from made-up results: means, deviations, the paper's figures and the differences."""

import re
from statistics import fmean, pstdev

import pytest
from made_results import filled, record, scored

from spgcl.experiments.layouts import tables_of
from spgcl.experiments.paper import printed
from spgcl.experiments.plan import NAMES, plan_of
from spgcl.experiments.render import Strong
from spgcl.experiments.results import Results
from spgcl.report.paper import paper_figure


def cell(table, row, column):
    text = next(line for line in table.rows if line[0] == row)[table.columns.index(column)]
    return text.text if isinstance(text, Strong) else text


def test_a_score_stands_beside_the_papers(tmp_path):
    tests = {("gae", "cora"): [71.0, 72.0, 74.5], ("gmi", "cora"): [75.0], ("gcn", "cora"): [99.0] * 3}

    def found(run):
        values = tests.get((run.row, run.graph), [])
        return scored(run, values[run.seed]) if run.seed < len(values) else None

    by_paper, by_tuned = tables_of(filled("table1", tmp_path, found))
    paper = paper_figure("gae", "cora").mean
    mean, deviation = fmean(tests["gae", "cora"]), pstdev(tests["gae", "cora"])
    assert cell(by_paper, "gae", "cora") == f"{mean:.1f} ± {deviation:.1f} ({paper:.1f}, {mean - paper:+.1f})"
    # One training of three is marked; the best without labels is in bold, whatever the supervised ones reach.
    assert cell(by_tuned, "gmi", "cora").endswith("†")
    strong = [line[0] for line in by_paper.rows if isinstance(line[1], Strong)]
    assert strong == ["gmi"]
    assert cell(by_paper, "grace", "cora") == f"- ({paper_figure('grace', 'cora').mean:.1f})"
    assert cell(by_paper, "gae", "mean") == f"{mean:.1f} ({paper:.1f}, {mean - paper:+.1f})"


def test_homophily_at_both_ends_of_training(tmp_path):
    def found(run):
        if run.graph != "cora":
            return None
        values = [0.5 + run.seed / 100, 0.7, 0.6 + run.seed / 100]
        points = [{"step": step, "transformed_homophily": value} for step, value in enumerate(values)]
        return record(run, observations=points, edge_homophily=0.25)

    (table,) = tables_of(filled("table5", tmp_path, found))
    row = next(line for line in table.rows if line[0] == "cora")
    starts = [0.5 + seed / 100 for seed in range(20)]
    paper = printed("table5")["cora"]["mean"]
    assert row[1] == "0.250"
    assert row[2] == f"{fmean(starts):.3f} ± {pstdev(starts):.4f}"
    assert row[3] == "0.500 to 0.690"
    assert row[5] == f"{fmean(starts) - paper:+.3f}"
    assert row[7] == "0.600 to 0.790"
    assert row[-1] == "20"


def test_norms_of_every_layer(tmp_path):
    (table,) = tables_of(filled("table6", tmp_path, lambda run: scored(run, 50.0 + run.seed)))
    setting = "layers=2, batch_norm=none"
    printed_here = printed("table6")[setting]["chameleon"]
    quoted = ", ".join(f"{norm:.0f}" for norm in printed_here["norms"])
    assert cell(table, setting, "chameleon, norms") == f"102, 51 ({quoted})"
    difference = 51 - printed_here["accuracy"]
    assert cell(table, setting, "chameleon, score") == (
        f"51.0 ± 0.8 ({printed_here['accuracy']:.1f}, {difference:+.1f})"
    )


def test_memory_that_does_not_suffice(tmp_path):
    def found(run):
        peak = None if run.method == "grace" else 2048.0
        return record(run, peak_mib=peak, ms_per_step=5.0, synthetic=False)

    (table,) = tables_of(filled("table3", tmp_path, found))
    assert cell(table, "grace", "genius, GB") == "OOM (OOM)"
    paper = printed("table3")["bgrl"]["coauthor-cs"]
    assert cell(table, "bgrl", "coauthor-cs, GB") == f"2.00 ({paper:.2f}, {2 / paper:.2f})"


def test_how_far_a_sweep_spreads(tmp_path):
    results = filled("fig-topk", tmp_path, lambda run: scored(run, 60.0 + run.given["positives"]))
    (table,) = tables_of(results)
    assert cell(table, "cora", "positives=18") == "78.0 ± 0.0"
    assert cell(table, "cora", "best - worst") == "16.0"


@pytest.mark.parametrize("name", NAMES)
def test_without_results_every_table_still_shows_what_the_paper_says(name, tmp_path):
    tables = tables_of(Results(plan_of(name), tmp_path))
    assert tables
    for table in tables:
        assert all(len(row) == len(table.columns) for row in table.rows)
    if name not in ("audit", "table8", "fig-distance", "fig-cover", "fig-topk", "fig-thop"):
        assert re.search(r"\d", str([row[1:] for row in tables[0].rows]))
