"""`benchmarks/bench.py`: records, where they go, and what is refused before anything is measured."""

import json
import time

import pytest
import torch
from bench import app
from timing.end_to_end import fit_and_evaluate
from timing.graphs import settings_of
from timing.isolated import main
from timing.memory import fit_and_embed
from timing.record import append, machine

from spgcl.cli import run
from spgcl.errors import InputError

SMALL = ["--set", "hidden=4", "--set", "seeds=10", "--set", "pool_size=20", "--set", "positives=3"]
MACHINE = {"device", "processor", "host", "cores", "threads", "versions", "date", "command", "given"}


def run_bench(arguments):
    return run(arguments, app, "bench.py")


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_speed_prints_and_appends_a_record(tmp_path, capsys):
    options = ["--methods", "spgcl,grace", "--no-reference", "--rounds", "1", "--device", "cpu", "--json"]
    file = tmp_path / "deep" / "speed.jsonl"

    assert run_bench(["speed", "csbm-homophilic", *SMALL, *options, "--results", str(file)]) == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert json.loads(file.read_text(encoding="utf-8")) == record
    assert set(record) >= MACHINE
    assert record["dataset"] == "csbm-homophilic"
    assert list(record["subjects"]) == ["spgcl", "grace"]
    assert record["subjects"]["spgcl"]["settings"]["hidden"] == 4
    assert record["given"]["seeds"] == "10"
    step, floor = record["subjects"]["spgcl"]["seconds"]["step"], record["floor"]
    assert floor["ratios"]["float32"] == pytest.approx(step / floor["seconds"]["float32"])
    assert "ratios" not in record


def test_speed_shows_a_table_and_says_that_nothing_is_recorded(tmp_path, capsys):
    assert run_bench(["speed", "--methods", "grace", "--rounds", "1", "--set", "hidden=4"]) == 0
    answer = capsys.readouterr()
    title, header, row = answer.out.splitlines()
    assert title == "csbm-heterophilic, medians of 1"
    assert "step ms" in header
    assert row.split()[:2] == ["grace", "-"]
    assert "--results FILE" in answer.err
    assert not list(tmp_path.iterdir())


def test_memory_is_measured_in_a_fresh_process(capsys):
    options = ["--no-reference", "--steps", "2", "--device", "cpu", "--json"]

    assert run_bench(["memory", *SMALL, *options]) == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert set(record) >= MACHINE | {"dataset", "subjects"}
    part = record["subjects"]["spgcl"]
    assert part["peak_mib"] > part["before_mib"] > 10
    assert (part["settings"]["hidden"], part["settings"]["steps"]) == (4, 2)


@pytest.mark.parametrize("subject", ["spgcl", "reference"])
def test_memory_of_training_and_embedding(subject):
    settings = settings_of("spgcl", "csbm-homophilic", {"hidden": 4, "steps": 2})
    found = fit_and_embed("csbm-homophilic", subject, settings, "cpu", threads=1)

    assert found["peak_mib"] >= found["before_mib"] > 10


def test_scale_records_every_size_in_a_checkout(tmp_path, capsys):
    (tmp_path / "results").mkdir()
    (tmp_path / "src" / "spgcl").mkdir(parents=True)

    assert run_bench(["scale", "1000", "--rounds", "1", "--set", "hidden=4", "--device", "cpu"]) == 0
    assert "1,000" in capsys.readouterr().out
    record = json.loads((tmp_path / "results" / "scale.jsonl").read_text(encoding="utf-8"))
    (size,) = record["sizes"]
    assert size["num_nodes"] == 1000
    assert set(size["seconds"]) == {"prepare", "start", "step", "embed"}
    assert size["random_row_seconds"] > 0
    assert record["growth"]["nodes_and_edges"] == record["growth"]["random_row"] == 1
    assert record["settings"]["batch_norm_rows"] == "pool"


def test_end_to_end_runs_both_commands():
    settings = settings_of("spgcl", "csbm-homophilic", {"hidden": 4, "steps": 2})
    seconds = fit_and_evaluate("csbm-homophilic", settings, "cpu", threads=1, asked=time.time() - 5)

    assert set(seconds) == {"import", "device", "fit", "eval", "peak_mib"}
    assert min(seconds.values()) > 0
    assert seconds["import"] >= 5


def test_end_to_end_fails_where_a_command_does():
    with pytest.raises(InputError, match="spgcl fit ended with exit code 2"):
        fit_and_evaluate("csbm-homophilic", {"hidden": -1}, "cpu", threads=1, asked=0)


def test_a_fault_of_the_input_is_the_answer_of_a_fresh_process(capsys):
    arguments = {"graph": "corra", "subject": "spgcl", "settings": {}, "device": "cpu", "threads": 1}
    main("memory", json.dumps(arguments))

    assert json.loads(capsys.readouterr().out)["failure"].startswith("unknown graph 'corra'; did you mean")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["speed", "corra"], "unknown graph 'corra'; did you mean 'cora'"),
        (["memory", "corra"], "unknown graph 'corra'"),
        (["speed", "--set", "hidden"], "--set 'hidden' is not name=value"),
        (["speed", "--set", "own_positive=false"], "own_positive is False, but the reference has True only"),
        (["speed", "genius-size", "--end-to-end"], "genius-size is no data set that fit knows"),
        (["speed", "--methods", "grace", "--end-to-end"], "--end-to-end runs spgcl"),
        (["speed", "--rounds", "0"], "Invalid value for '--rounds'"),
        (["scale", "10"], "Invalid value for"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_what_is_wrong_is_said_in_one_line(arguments, message, capsys):
    assert run_bench(arguments) == 2
    answer = capsys.readouterr()
    assert message in answer.err
    assert answer.err.count("\n") == 1
    assert not answer.out


def test_lines_are_appended(tmp_path):
    path = tmp_path / "results.jsonl"
    append(path, {"a": 1})
    append(path, {"a": 2})

    assert path.read_text(encoding="utf-8") == '{"a": 1}\n{"a": 2}\n'


def test_a_machine_has_its_processor_and_versions():
    described = machine(torch.device("cpu"))

    assert described["processor"] == described["host"] != ""
    assert described["threads"] == torch.get_num_threads()
    assert described["cores"] >= 1
    assert {"spgcl", "python", "torch"} <= set(described["versions"])
