"""benchmarks/search.py: what it trains next, and what it writes."""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
import search
import spaces
import torch
from trainings import asked_pairs

from spgcl.methods import METHODS, resolved_settings
from spgcl.methods.memory import explained_memory

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "search.py"


def test_draws_come_first_and_then_the_seeds_of_the_best():
    groups = [[("mlp", name, number) for number in range(4)] for name in ("cora", "citeseer")]
    scores = defaultdict(dict)
    assert list(search.missing(groups, scores)) == [(trial, 0) for group in groups for trial in group]
    line = {"dataset": "cora", "method": "mlp"}
    for number, validation in enumerate([50.0, 70.0, 60.0, 65.0]):
        search.keep(scores, {**line, "trial": number, "seed": 0, "validation": validation})
    search.keep(scores, {**line, "trial": 1, "seed": 1, "validation": None})
    finals = [(("mlp", "cora", trial), seed) for trial, seed in ((1, 2), (3, 1), (3, 2), (2, 1), (2, 2))]
    assert list(search.missing(groups, scores)) == finals + [(trial, 0) for trial in groups[1]]


def test_a_training_that_ran_out_of_memory_is_not_a_failed_setting(monkeypatch):
    def fail(*_, **__):
        with explained_memory(METHODS["spgcl"], {}):
            raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(search, "embeddings_of", fail)
    with pytest.raises(torch.OutOfMemoryError):
        search.validate("spgcl", "csbm-homophilic", 0, 0, {})


def test_every_training_is_written_with_all_its_settings_and_none_is_repeated(tmp_path):
    results = tmp_path / "search.jsonl"
    command = [sys.executable, SCRIPT, "--method", "mlp", "--trials", "2"]
    command += ["--results", results, "csbm-homophilic"]
    subprocess.run(command, check=True, capture_output=True)
    records = [json.loads(line) for line in results.read_text().splitlines()]
    assert [(record["trial"], record["seed"]) for record in records] == [(2, 0), (2, 1), (2, 2)]
    for record in records:
        assert record["settings"].keys() == resolved_settings("mlp", None, "csbm-homophilic", {}).keys()
        assert 0 < record["validation"] < 100
        assert "test" not in record
    subprocess.run(command, check=True, capture_output=True)
    assert len(results.read_text().splitlines()) == 3


def test_settings_that_were_scored_are_not_trained_again():
    def scored(method, preset, seed, validation, given=()):
        machine = dict.fromkeys(("device", "processor", "threads", "versions", "date"), "")
        scores = {"paper": {"test": 1.0, "validation": validation}, "tuned": {"test": 2.0, "validation": 3.0}}
        asked = {"method": method, "preset": preset, "given": dict(given), "seed": seed}
        return {"dataset": "cora", "scores": scores, **asked, **machine}

    records = [
        scored("grace", "published", 0, 50.0),
        scored("grace", "published", 1, 51.0, given={"steps": "3"}),  # other settings
        scored("grace", None, 1, 52.0),  # the first setting of GRACE on Cora is the published one
        scored("selene", None, 0, 53.0),  # it has none: the defaults
        scored("selene", None, 1, 54.0),
        scored("dgi", None, 0, 55.0),  # not asked for
    ]
    known = defaultdict(dict, {("selene", "cora", 0): {1: 60.0}})
    asked = {(method, "cora", trial) for method in ("grace", "selene") for trial in range(2)}
    copied = list(search.scored_before(records, asked, known))
    assert [(line["method"], line["trial"], line["seed"], line["validation"]) for line in copied] == [
        ("grace", 0, 0, 50.0),
        ("selene", 0, 0, 53.0),
    ]
    assert copied[0]["settings"] == resolved_settings("grace", "published", "cora", {})
    defaults = list(search.scored_before(records, {("grace", "cora", spaces.DEFAULTS)}, defaultdict(dict)))
    assert [(line["trial"], line["seed"], line["validation"]) for line in defaults] == [(50, 1, 52.0)]
    assert defaults[0]["settings"] == resolved_settings("grace", None, "cora", {})
    assert not any("test" in json.dumps(line) for line in copied)


def test_pairs_are_asked_for_by_method_and_graph():
    pairs = asked_pairs(["cora", "dgi:actor"], ["grace", "gca"])
    assert pairs == [("grace", "cora"), ("gca", "cora"), ("dgi", "actor")]
    assert asked_pairs(["cora"], None) == [("spgcl", "cora")]


@pytest.mark.parametrize("method", spaces.SPACES)
def test_every_draw_has_possible_values(method):
    draws = [spaces.settings_of(method, "cora", trial) for trial in range(1, 25)]
    assert len({json.dumps(each) for each in draws}) > 20
    for each in draws:
        resolved_settings(method, None, "cora", each)


@pytest.mark.parametrize(("words", "named"), [(["cora", "--trials", "60"], "60"), (["raw:cora"], "raw")])
def test_what_cannot_be_searched_is_refused(words, named, tmp_path):
    command = [sys.executable, SCRIPT, "--results", tmp_path / "search.jsonl", *words]
    failed = subprocess.run(command, capture_output=True, text=True)
    assert failed.returncode == 2 and named in failed.stderr.splitlines()[-1]
