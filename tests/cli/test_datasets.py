import json
from pathlib import Path

import pytest
from commands import answer, output

from spgcl.cli import run


@pytest.fixture
def own_folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("SPGCL_DATA", str(tmp_path))
    return tmp_path


def test_list_marks_what_is_on_disk(own_folder, capsys):
    by_name = {record["name"]: record for record in answer(capsys, "datasets", "list")}
    assert len(by_name) == 23
    assert by_name["csbm-heterophilic"]["on_disk"] == "built in"
    assert by_name["cora"] == {
        "name": "cora",
        "nodes": 2708,
        "on_disk": False,
        "metric": "accuracy",
        "splits": "public split (1)",
        "licence": "MIT",
        "source": "kimiyoung/planetoid",
    }
    assert str(own_folder) in output(capsys, "datasets", "list")[0]


def test_fetch_from_a_mirror_then_verify_and_measure(benchmark_folder, own_folder, capsys):
    fetch = ["datasets", "fetch", "minesweeper", "--mirror", benchmark_folder]
    path = own_folder / "minesweeper" / "minesweeper.npz"
    for written in ([str(path)], []):
        assert answer(capsys, *fetch) == {"folder": str(own_folder), "written": {"minesweeper": written}}
    assert answer(capsys, "datasets", "verify", "minesweeper") == {
        "folder": str(own_folder),
        "files": [{"name": "minesweeper", "file": "minesweeper/minesweeper.npz", "state": "ok"}],
    }
    measured = answer(capsys, "datasets", "stats", "minesweeper")["minesweeper"]
    assert measured["edges"]["loaded"] == 39402


def test_verify_fails_for_wrong_bytes_and_names_them(benchmark_folder, own_folder, capsys):
    path = own_folder / "minesweeper" / "minesweeper.npz"
    path.parent.mkdir()
    path.write_bytes(b"tampered")
    assert run(["datasets", "verify"]) == 1
    captured = capsys.readouterr()
    assert "minesweeper/minesweeper.npz: wrong bytes" in captured.err and "absent" in captured.out
    assert run(["datasets", "verify", "--json"]) == 1
    files = json.loads(capsys.readouterr().out)["files"]
    states = {record["name"]: record["state"] for record in files}
    assert states["minesweeper"] == "wrong bytes" and states["cora"] == "absent"


def test_verify_without_names_reports_absent_files_and_passes(own_folder, capsys):
    assert "absent" in output(capsys, "datasets", "verify")[0]
    assert run(["datasets", "verify", "cora"]) == 1


def test_stats_reproduces_the_papers_node_homophily_over_directed_edges(benchmark_folder, capsys):
    lines = output(capsys, "datasets", "stats", "chameleon")[0].splitlines()
    homophily = next(line for line in lines if line.startswith("node homophily"))
    assert homophily.split()[2:5] == ["0.2471", "0.103", "0.1032"] and "directed list" in homophily
    edges = answer(capsys, "datasets", "stats", "chameleon")["chameleon"]["edges"]
    assert edges.keys() == {"loaded", "paper", "counted_as_paper", "why"}
    assert (edges["loaded"], edges["paper"], edges["counted_as_paper"]) == (31371, 36101, None)


def test_stats_without_files_measures_the_built_in_graphs(own_folder, capsys):
    measured, notes = output(capsys, "datasets", "stats", "--json")
    assert set(json.loads(measured)) == {"csbm-homophilic", "csbm-heterophilic"}
    assert "not on disk: cora" in notes
