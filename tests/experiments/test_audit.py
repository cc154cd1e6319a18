"""The audit: its findings name what was read, and its measurements are those of naive loops."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

import spgcl
from spgcl.evaluation import probe, tuned_probe
from spgcl.experiments.audit import Curves, by_rule, joined, pooled_masks, probe_curves, tuned_point
from spgcl.experiments.effects import effect_tables
from spgcl.experiments.findings import findings, findings_text, material
from spgcl.experiments.plan import plan_of
from spgcl.experiments.results import Results, append

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def dataset():
    """Ten splits of a small graph, with labels that are partly noise."""
    full = spgcl.load("csbm-heterophilic")
    splits = replace(
        full.splits, **{part: getattr(full.splits, part)[:3] for part in ("train", "validation", "test")}
    )
    return replace(full, splits=splits)


@pytest.fixture(scope="module")
def vectors(dataset):
    return np.array(dataset.graph.features)


def test_every_finding_can_be_looked_up():
    contents = material()
    kinds = [kind["id"] for kind in contents["kinds"]]
    found = findings(contents["findings"])
    # Sections are made from consecutive findings of one kind.
    assert list(dict.fromkeys(each.kind for each in found)) == kinds
    assert [each.kind for each in found] == sorted((each.kind for each in found), key=kinds.index)
    for each in [*found, *findings(contents["clean"])]:
        assert re.fullmatch(r"[\w-]+/[\w.-]+", each.repository)
        assert re.fullmatch("[0-9a-f]{40}", each.commit)
        assert each.places and all(0 < place.lines[0] <= place.lines[1] for place in each.places)
    text = findings_text()
    assert all(kind["title"] in text for kind in contents["kinds"])
    link = (
        "https://github.com/haonan3/SPGCL/blob/58caefa60c5cf7c063cee23a954340052cb0bc00/src/main.py#L41-L57"
    )
    assert link in text


def naive_rules(validation, test):
    """The rules as scripts apply them, epoch by epoch."""
    found = {"validation": [], "ties": [], "rising": [], "test": [], "last": []}
    for of_split, tests in zip(validation, test, strict=True):
        best, kept, tied, rising = -1.0, 0.0, 0.0, 0.0
        for score, result in zip(of_split, tests, strict=True):
            if score > best:
                kept, tied = result, result
            elif score == best and result > tied:
                tied = result
            if score >= best:
                best = score
                rising = max(rising, result)
        found["validation"].append(kept)
        found["ties"].append(tied)
        found["rising"].append(rising)
        found["test"].append(max(tests))
        found["last"].append(tests[-1])
    means = {rule: 100 * sum(scores) / len(scores) for rule, scores in found.items()}
    return {**means, "one_epoch": 100 * max(sum(column) / len(column) for column in zip(*test, strict=True))}


def test_rules_choose_what_scripts_choose():
    generator = np.random.default_rng(4)
    validation, test = generator.integers(1, 9, (2, 6, 30)) / 10
    found = by_rule(Curves(validation, test))
    assert found == pytest.approx(naive_rules(validation.tolist(), test.tolist()), abs=1e-3)
    assert found["validation"] <= found["ties"] <= found["rising"] <= found["test"]
    assert len(set(found.values())) == len(found)


def test_probe_curves_are_those_of_the_probe(dataset, vectors):
    curves = probe_curves(vectors, dataset, epochs=60)
    assert curves.test.shape == (3, 60)
    scores = probe(vectors, dataset.labels, dataset.splits, epochs=60)
    assert by_rule(curves)["validation"] == pytest.approx(scores.mean, abs=0.1)
    assert 100 * curves.validation.max(axis=1) == pytest.approx(
        [split.validation for split in scores.splits], abs=0.7
    )


def test_restarts_take_the_place_of_splits_where_there_is_one(dataset, vectors):
    parts = {part: getattr(dataset.splits, part)[:1] for part in ("train", "validation", "test")}
    one = replace(dataset, splits=replace(dataset.splits, **parts))
    assert probe_curves(vectors, one, epochs=3).test.shape == (10, 3)


def test_evaluations_of_a_training_are_joined_epoch_by_epoch(dataset, vectors):
    point = tuned_point(vectors, dataset, CPU)
    scores = tuned_probe(vectors, dataset.labels, dataset.splits)
    assert (100 * point.test[:, 0]).tolist() == pytest.approx([split.test for split in scores.splits])
    assert joined([point, point, point]).validation.shape == (3, 3)


def test_pooled_masks_count_training_nodes_as_often_as_they_are_in_a_mask(dataset, vectors):
    found = pooled_masks(vectors, dataset)
    splits = dataset.splits
    inside = total = 0
    for train in splits.train:
        for mask in splits.test:
            for node in np.flatnonzero(mask):
                inside += bool(train[node])
                total += 1
    assert found["trained"] == pytest.approx(100 * inside / total, abs=0.05)
    assert found["test"] == pytest.approx(tuned_probe(vectors, dataset.labels, splits).mean, abs=1e-3)
    assert found["pooled"] > found["test"]


def test_with_one_split_there_is_nothing_to_pool(dataset, vectors):
    parts = {part: getattr(dataset.splits, part)[:1] for part in ("train", "validation", "test")}
    found = pooled_masks(vectors, replace(dataset, splits=replace(dataset.splits, **parts)))
    assert found["trained"] == 0
    assert found["pooled"] == pytest.approx(found["test"], abs=0.1)


def test_tables_show_what_a_rule_adds(tmp_path):
    plan = plan_of("audit", quick=True)
    run = next(run for run in plan.runs if run.measure == "epochs" and run.method == "spgcl")
    rules = {"last": 70.0, "validation": 71.0, "ties": 71.5, "rising": 72.0, "test": 74.0, "one_epoch": 70.5}
    line = {"digest": run.digest, "training": rules, "evaluations": 25, "probe": rules}
    append(tmp_path / "audit.jsonl", line)
    epochs, masks, _ = effect_tables(Results(plan, tmp_path))
    assert epochs.rows[0][:3] == [run.graph, "spgcl", "training, 25 evaluations"]
    assert epochs.rows[0][3:] == ["70.0", "71.0", "+0.5", "+1.0", "+3.0", "-0.5", "1"]
    assert epochs.rows[1][2] == "probe"
    assert masks.rows == []
