"""Every plan can be carried out: its methods, settings and graphs exist, and its rows are told apart."""

import pytest

from spgcl.datasets.entries import entries
from spgcl.datasets.synthetic import BUILT_IN
from spgcl.errors import InputError
from spgcl.experiments.layouts import LAYOUTS
from spgcl.experiments.measures import MEASURES
from spgcl.experiments.plan import NAMES, asked_names, plan_of
from spgcl.methods import METHODS


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_can_be_carried_out(name):
    plan, small = plan_of(name), plan_of(name, quick=True)
    assert plan.layout in LAYOUTS
    assert set(plan.graphs) <= entries().keys()
    assert {run.graph for run in small.runs} <= BUILT_IN.keys()
    for run in (*plan.runs, *small.runs):
        assert run.measure in MEASURES
        assert run.method in ("", *METHODS)
        assert run.digest
    # Every row of the full plan is in the small one, if it has any.
    if "vary" not in str(plan.rows):
        assert {run.row for run in small.runs} == {run.row for run in plan.runs}


def test_runs_of_one_plan_are_told_apart():
    for name in NAMES:
        runs = plan_of(name).runs
        assert len({(run.row, run.graph, run.seed) for run in runs}) == len(runs), name


def test_a_seed_of_everything_comes_before_the_next():
    seeds = [run.seed for run in plan_of("table2").runs]
    assert seeds == sorted(seeds)


def test_the_paper_is_complete():
    """Tables 1 and 2 with 15 methods, K from 2 to 18, and 20 trainings for the homophily."""
    for name in ("table1", "table2"):
        assert {run.method for run in plan_of(name).runs} == METHODS.keys()
    assert {run.given["positives"] for run in plan_of("fig-topk").runs} == {*range(2, 19, 2)}
    assert len({run.seed for run in plan_of("table5").runs}) == 20


def test_all_names_every_plan_once():
    assert asked_names(["table7", "all"])[0] == "table7"
    assert sorted(asked_names(["table7", "all"])) == sorted(NAMES)
    with pytest.raises(InputError, match="table77"):
        asked_names(["table77"])
