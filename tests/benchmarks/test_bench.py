"""`benchmarks/bench.py`: its records, and what is refused before anything is measured."""

import json
import time

import pytest
import torch
from bench import main
from timing import isolated
from timing.end_to_end import fit_and_evaluate
from timing.graphs import settings_of
from timing.memory import fit_and_embed

from spgcl.errors import InputError
from spgcl.experiments.results import machine, read_lines

SMALL = ["--set", "hidden=4", "--set", "seeds=10", "--set", "pool_size=20", "--set", "positives=3"]
MACHINE = {"device", "processor", "host", "cores", "threads", "versions", "date", "command"}


@pytest.fixture
def bench(tmp_path):
    """Run a command on the CPU; its records, which are also those of a results file that did not exist."""

    def run(*words):
        file = tmp_path / "deep" / "results.jsonl"
        assert main([*words, "--device", "cpu", "--results", str(file)]) == 0
        return read_lines(file)

    return run


def test_speed_prints_and_appends_a_record(bench, capsys):
    words = ["--methods", "spgcl,grace", "--no-reference", "--rounds", "1", "--json"]
    (record,) = bench("speed", "csbm-homophilic", *SMALL, *words)

    assert json.loads(capsys.readouterr().out) == [record]
    assert set(record) >= MACHINE
    assert record["dataset"] == "csbm-homophilic"
    assert list(record["subjects"]) == ["spgcl", "grace"]
    assert record["subjects"]["spgcl"]["settings"]["hidden"] == 4
    assert record["given"]["seeds"] == "10"
    step, floor = record["subjects"]["spgcl"]["seconds"]["step"], record["floor"]
    assert floor["ratios"]["float32"] == pytest.approx(step / floor["seconds"]["float32"])
    assert "ratios" not in record


def test_speed_of_another_method_prints_its_steps(bench, capsys):
    bench("speed", "--methods", "grace", "--rounds", "1", "--set", "hidden=4")

    assert "| graph | set | grace |\n" in capsys.readouterr().out


def test_memory_is_measured_in_a_fresh_process(bench, capsys):
    (record,) = bench("memory", *SMALL, "--no-reference", "--steps", "2")

    assert "resident" in capsys.readouterr().out
    assert set(record) >= MACHINE | {"dataset", "subjects", "given"}
    part = record["subjects"]["spgcl"]
    assert part["peak_mib"] > part["before_mib"] > 10
    assert (part["settings"]["hidden"], part["settings"]["steps"]) == (4, 2)


def test_scale_records_every_size(bench, capsys):
    (record,) = bench("scale", "1000", "--rounds", "1", "--set", "hidden=4")

    assert "| 1,000 |" in capsys.readouterr().out
    (size,) = record["sizes"]
    assert size["num_nodes"] == 1000
    assert set(size["seconds"]) == {"prepare", "start", "step", "embed"}
    assert size["random_row_seconds"] > 0
    assert record["growth"]["nodes_and_edges"] == record["growth"]["random_row"] == 1
    assert record["settings"]["batch_norm_rows"] == "pool"


def test_walks_are_timed_with_and_without_a_bias(bench):
    records = bench("walks", "csbm-homophilic", "--walks", "1", "--length", "4", "--rounds", "3")

    assert [(record["p"], record["q"]) for record in records] == [(1, 1), (0.25, 4), (4, 0.25)]
    for record in records:
        assert len(record["rounds"]) == 3 and sorted(record["rounds"])[1] == record["seconds"]
        assert (record["walks"], record["length"], record["device"]) == (1, 4, "cpu")


@pytest.mark.parametrize("subject", ["spgcl", "reference"])
def test_memory_of_training_and_embedding(subject):
    settings = settings_of("spgcl", "csbm-homophilic", {"hidden": 4, "steps": 2})
    found = fit_and_embed("csbm-homophilic", subject, settings, "cpu", threads=1)

    assert found["peak_mib"] >= found["before_mib"] > 10


def test_end_to_end_runs_both_commands():
    settings = settings_of("spgcl", "csbm-homophilic", {"hidden": 4, "steps": 2})
    seconds = fit_and_evaluate("csbm-homophilic", settings, "cpu", threads=1, asked=time.time() - 5)

    assert set(seconds) == {"import", "device", "fit", "eval", "peak_mib"}
    assert min(seconds.values()) > 0
    assert seconds["import"] >= 5


def test_end_to_end_fails_if_a_command_does():
    with pytest.raises(InputError, match="spgcl fit"):
        fit_and_evaluate("csbm-homophilic", {"hidden": -1}, "cpu", threads=1, asked=0)


def test_an_input_error_is_the_answer_of_a_fresh_process(capsys):
    arguments = {"graph": "corra", "subject": "spgcl", "settings": {}, "device": "cpu", "threads": 1}
    isolated.main("memory", json.dumps(arguments))

    assert "did you mean 'cora'" in json.loads(capsys.readouterr().out)["failure"]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["speed", "corra"], "'corra'"),
        (["memory", "corra"], "'corra'"),
        (["walks", "corra"], "'corra'"),
        (["speed", "--set", "hidden"], "--set 'hidden'"),
        (["speed", "--set", "own_positive=false"], "own_positive"),
        (["speed", "genius-size", "--end-to-end"], "genius-size"),
        (["speed", "--methods", "grace", "--end-to-end"], "--end-to-end runs spgcl"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_what_is_wrong_is_reported_in_one_line(words, named, tmp_path, capsys):
    file = tmp_path / "results.jsonl"
    assert main([*words, "--results", str(file)]) == 2
    answer = capsys.readouterr()
    assert named in answer.err
    assert answer.err.count("\n") == 1
    assert not answer.out
    assert not file.exists()


@pytest.mark.parametrize("words", [["speed", "--rounds", "0"], ["scale", "10"]])
def test_numbers_that_are_too_small_are_refused(words, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert f"{words[-1]} is below" in capsys.readouterr().err


def test_a_machine_has_its_processor_and_versions():
    described = machine(torch.device("cpu"))

    assert described["processor"] == described["host"] != ""
    assert described["threads"] == torch.get_num_threads()
    assert described["cores"] >= 1
    assert {"spgcl", "python", "torch"} <= set(described["versions"])
