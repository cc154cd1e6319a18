"""`spgcl reproduce`: everything in its small version, killed and continued, and its refusals."""

import json
import os
import re
import signal
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter

import pytest
from commands import SPGCL, answer, refusal

from spgcl.cli import run
from spgcl.experiments.plan import NAMES, plan_of


def lines_of(path):
    return path.read_bytes().splitlines() if path.exists() else []


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """What `reproduce all --quick` wrote, without any data."""
    folder = tmp_path_factory.mktemp("quick")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPGCL_DATA", str(folder / "none"))
        patch.chdir(folder)
        assert run(["reproduce", "all", "--quick", "--device", "cpu"]) == 0
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_every_table_and_figure_has_a_small_version(everything, name):
    out = everything / "reproduction" / "quick"
    texts = {suffix: (out / f"{name}.{suffix}").read_text("utf-8") for suffix in ("md", "tex", "html")}
    # Every graph that was measured is in every format, with a number in its row or column.
    for graph in {each.graph for each in plan_of(name, quick=True).runs}:
        assert all(graph in text for text in texts.values())
    bodies = re.findall(r"\| ---.*\|\n((?:\|.*\n)+)", texts["md"])
    rows = "".join(bodies).splitlines()
    assert rows and all(re.search(r"\d", row) or name == "table11" for row in rows)
    if name.startswith("fig-"):
        drawn = ElementTree.parse(out / f"{name}.svg").getroot()
        words = {text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")}
        assert {"csbm-homophilic", "csbm-heterophilic"} <= words
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert f"{name}.svg" in texts["md"] and f"{name}.png" in texts["tex"]


def test_every_run_is_one_line_that_says_where_it_was_measured(everything):
    found = [
        json.loads(line)
        for path in (everything / "results" / "quick").glob("*.jsonl")
        for line in path.read_text("utf-8").splitlines()
    ]
    wanted = {run.digest for name in NAMES for run in plan_of(name, quick=True).runs}
    assert Counter(line["digest"] for line in found) == Counter(wanted)
    for line in found:
        assert line["device"] == "cpu" and line["versions"]["torch"] and line["processor"] and line["date"]
        if line["measure"] == "scores":
            assert all(scores["splits"] for scores in line["scores"].values())


def test_nothing_is_run_twice(everything, capsys, monkeypatch):
    monkeypatch.chdir(everything)
    before = {path: path.read_bytes() for path in (everything / "results").rglob("*.jsonl")}
    records = answer(capsys, "reproduce", "all", "--quick")
    assert [record["missing"] for record in records] == [0] * len(NAMES)
    assert before == {path: path.read_bytes() for path in (everything / "results").rglob("*.jsonl")}


def test_killed_half_way_it_loses_no_run_and_repeats_none(tmp_path):
    command = [SPGCL, "reproduce", "table7", "--quick", "--workers", "1", "--device", "cpu"]
    path = tmp_path / "results" / "quick" / "table7.jsonl"
    process = subprocess.Popen(command, cwd=tmp_path, start_new_session=True)
    while not lines_of(path):
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    wait_until_alone(process.pid)
    finished = lines_of(path)
    wanted = {run.digest for run in plan_of("table7", quick=True).runs}
    assert 1 <= len(finished) < len(wanted)
    with path.open("ab") as file:
        file.write(finished[0][:100])

    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    after = lines_of(path)
    whole = [json.loads(line)["digest"] for line in after if line.endswith(b"}")]
    assert after[: len(finished)] == finished
    assert sorted(whole) == sorted(wanted)


def wait_until_alone(group):
    """Wait until no process of a group lives; the dead may still wait for init to collect them."""
    for _ in range(1000):
        states = subprocess.run(["ps", "-eo", "pgid=,stat="], capture_output=True, text=True, check=True)
        lines = [line.split() for line in states.stdout.splitlines()]
        if not any(pgid == str(group) and not state.startswith("Z") for pgid, state in lines):
            return
        time.sleep(0.01)
    raise AssertionError("a worker outlived the process that started it")


def test_ctrl_c_ends_it_and_its_workers_in_silence(tmp_path):
    command = [SPGCL, "reproduce", "table7", "--quick", "--workers", "2", "--device", "cpu"]
    process = subprocess.Popen(command, cwd=tmp_path, start_new_session=True, stderr=subprocess.PIPE)
    while not lines_of(tmp_path / "results" / "quick" / "table7.jsonl"):
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate()
    assert (process.returncode, errors) == (130, b"")
    wait_until_alone(process.pid)


def test_an_unknown_name_is_refused_with_one_like_it(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "'table 7'" in refusal(capsys, "reproduce", "table 7")
    assert "'coral'" in refusal(capsys, "reproduce", "table7", "--graph", "coral")
    assert list(tmp_path.iterdir()) == []


def test_missing_data_is_skipped_with_one_line(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("SPGCL_DATA", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    assert run(["reproduce", "table7"]) == 0
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith("note: table7: chameleon, squirrel, amazon-photo, wikics skipped")
    assert str(tmp_path / "none") in line
    assert not (tmp_path / "results").exists()
    assert "paper" in (tmp_path / "reproduction" / "table7.md").read_text("utf-8")


def test_stale_results_are_told_in_one_line_and_not_shown(capsys, tmp_path, monkeypatch):
    first = plan_of("table7", quick=True).runs[0]
    path = tmp_path / "results" / "quick" / "table7.jsonl"
    path.parent.mkdir(parents=True)
    other = {"digest": first.digest, "settings": {**first.settings, "seeds": 1}}
    path.write_text(json.dumps(other) + "\n")
    monkeypatch.chdir(tmp_path)
    assert run(["reproduce", "table7", "--quick", "--no-run"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert "table7: 1 of 5 results are stale" in line
