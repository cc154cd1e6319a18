"""Claims of the paper asked of made-up results, on which each holds, and on which it does not."""

import pytest
from made_results import filled, record, scored

from spgcl.experiments.claims import CHECKS, claims
from spgcl.experiments.page import PAPER, reproduction
from spgcl.experiments.paper import claimed
from spgcl.experiments.plan import plan_of
from spgcl.experiments.results import Results


def verdict(claim, tmp_path, **lines):
    """What a check says of results that functions of a run describe, by the name of the plan."""
    names = (name.replace("_", "-") if name.startswith("fig") else name for name in lines)
    found = {name: filled(name, tmp_path, line) for name, line in zip(names, lines.values(), strict=True)}
    return CHECKS[claim](found)


def test_every_claim_has_a_check_and_waits_for_results(tmp_path):
    assert claimed().keys() == CHECKS.keys()
    found = {name: Results(plan_of(name), tmp_path) for name in PAPER}
    assert {claim.verdict for claim in claims(found)} == {"not measured"}


@pytest.mark.parametrize(("own", "expected"), [(90.0, "holds"), (70.0, "does not hold")])
def test_first_among_methods_without_labels(tmp_path, own, expected):
    def line(run):
        # The supervised method is above all, and does not count.
        test = {"spgcl": own, "gcn": 99.0, "grace": 80.0, "raw": 85.0}.get(run.row)
        return test and scored(run, test)

    found, evidence = verdict("heterophilic", tmp_path, table2=line)
    assert found == expected
    assert evidence.count("on 6 of 6" if own > 85 else "on 0 of 6") == 4


def test_first_on_two_and_close_on_the_others(tmp_path):
    def line(run):
        own = {"cora": 81.0, "citeseer": 80.5}.get(run.graph, 79.5)
        test = {"spgcl": own, "grace": 80.0}.get(run.row)
        return test and scored(run, test)

    found, evidence = verdict("homophilic", tmp_path, table1=line)
    assert found == "holds"
    assert "(cora, citeseer)" in evidence and "0.5 points" in evidence


def peaks(**found):
    return lambda run: record(run, peak_mib=found[run.method], ms_per_step=1.0, synthetic=False)


def test_memory_is_compared_with_every_other_method(tmp_path):
    assert verdict("memory", tmp_path / "a", table3=peaks(spgcl=10, grace=None, bgrl=20))[0] == "holds"
    assert verdict("memory", tmp_path / "b", table3=peaks(spgcl=10, grace=50, bgrl=9))[0] == "does not hold"


def homophilies(start, end, graph):
    def line(run):
        points = [{"step": step, "transformed_homophily": value} for step, value in enumerate((start, end))]
        return record(run, observations=points, edge_homophily=graph) if run.seed < 2 else None

    return line


def test_homophily_at_the_start_and_what_training_makes_of_it(tmp_path):
    rising = homophilies(0.5, 0.6, 0.4)
    assert verdict("start", tmp_path / "a", table5=rising)[0] == "holds"
    assert verdict("end", tmp_path / "a", table5=rising)[0] == "holds"
    falling = homophilies(0.3, 0.2, 0.4)
    assert verdict("start", tmp_path / "b", table5=falling)[0] == "does not hold"
    assert verdict("end", tmp_path / "b", table5=falling)[0] == "does not hold"


def test_batch_norm_is_compared_at_the_same_depth(tmp_path):
    def better(run):
        plain = run.given["batch_norm"] == "plain"
        line = scored(run, 60.0 if plain else 50.0)
        return {**line, "observed": {"weight_norm_1": 9.0 if plain else 6.0}}

    assert verdict("batch_norm", tmp_path / "a", table6=better)[0] == "holds"
    found, evidence = verdict("weights", tmp_path / "b", table6=better)
    assert found == "does not hold" and "1.50 to 1.50" in evidence


@pytest.mark.parametrize(("slope", "expected"), [(0.1, "holds"), (0.2, "does not hold")])
def test_a_hyper_parameter_matters_above_two_points(tmp_path, slope, expected):
    def line(run):
        return scored(run, 60.0 + slope * run.given["positives"])

    assert verdict("positives", tmp_path, fig_topk=line)[0] == expected


def test_an_encoder_is_compared_with_its_supervised_self(tmp_path):
    def line(run):
        return scored(
            run, {"contrastive": 70.0, "supervised": 65.0, "untrained": 90.0}[run.row.split(", ")[1]]
        )

    assert verdict("encoders", tmp_path, table10=line)[0] == "holds"


def test_curves_are_compared_at_their_ends(tmp_path):
    def line(run):
        points = [
            {"step": 0, "class_centre_distance": 0.5},
            {
                "step": 25,
                "class_centre_distance": 0.2,
                "node_cover_ratio": 1,
                "overlapped_selection_ratio": 0.1,
            },
        ]
        return record(run, observations=points)

    assert verdict("distance", tmp_path / "a", **{"fig_distance": line})[0] == "holds"
    assert verdict("cover", tmp_path / "b", **{"fig_cover": line})[0] == "holds"


def test_a_figure_is_drawn_again_only_for_other_values(tmp_path):
    filled("fig-topk", tmp_path, lambda run: scored(run, 60.0))
    documents = tmp_path / "docs"
    first = reproduction(tmp_path, documents)
    path = documents / "figures" / "fig-topk.svg"
    path.parent.mkdir(parents=True)
    # As another version of the plotting library would have written it.
    path.write_text(first[path].replace("<svg", "<!-- other bytes --><svg", 1))
    assert reproduction(tmp_path, documents)[path] == path.read_text()
    (tmp_path / "fig-topk.jsonl").unlink()
    filled("fig-topk", tmp_path, lambda run: scored(run, 61.0))
    assert reproduction(tmp_path, documents)[path] != path.read_text()
    page = first[documents / "reproduction.md"]
    assert "figures/fig-topk.svg" in page and "figures/fig-thop.svg" not in page
