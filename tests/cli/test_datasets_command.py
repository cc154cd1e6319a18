import json
import os
from pathlib import Path

import pytest

from spgcl.cli import run


@pytest.fixture
def benchmark_files() -> Path:
    chosen = os.environ.get("SPGCL_DATA")
    if not chosen or not (Path(chosen) / "MANIFEST.json").is_file():
        pytest.skip("SPGCL_DATA does not name a folder with the benchmark files")
    return Path(chosen)


@pytest.fixture
def own_folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("SPGCL_DATA", str(tmp_path))
    return tmp_path


def _json(capsys, *arguments):
    code = run(["datasets", *arguments, "--json"])
    captured = capsys.readouterr()
    return code, json.loads(captured.out)


def test_list_tells_what_is_there_and_what_is_not(own_folder, capsys):
    code, records = _json(capsys, "list")
    by_name = {record["name"]: record for record in records}
    assert code == 0 and len(by_name) == 23
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
    assert run(["datasets", "list"]) == 0
    assert str(own_folder) in capsys.readouterr().out


def test_fetch_from_a_mirror_then_verify_and_measure(benchmark_files, own_folder, capsys):
    code, answer = _json(capsys, "fetch", "minesweeper", "--mirror", str(benchmark_files))
    path = own_folder / "minesweeper" / "minesweeper.npz"
    assert code == 0 and answer == {"folder": str(own_folder), "written": {"minesweeper": [str(path)]}}
    assert _json(capsys, "fetch", "minesweeper", "--mirror", str(benchmark_files))[1]["written"] == {
        "minesweeper": []
    }
    assert _json(capsys, "verify", "minesweeper") == (
        0,
        {
            "folder": str(own_folder),
            "files": [{"name": "minesweeper", "file": "minesweeper/minesweeper.npz", "state": "ok"}],
        },
    )
    code, answer = _json(capsys, "stats", "minesweeper")
    assert code == 0 and answer["minesweeper"]["edges"]["loaded"] == 39402


def test_verify_fails_for_wrong_bytes_and_says_which(benchmark_files, own_folder, capsys):
    path = own_folder / "minesweeper" / "minesweeper.npz"
    path.parent.mkdir()
    path.write_bytes(b"tampered")
    assert run(["datasets", "verify"]) == 1
    captured = capsys.readouterr()
    assert "minesweeper/minesweeper.npz: wrong bytes; run `spgcl datasets fetch minesweeper`" in captured.err
    assert "absent" in captured.out
    code, answer = _json(capsys, "verify")
    states = {record["name"]: record["state"] for record in answer["files"]}
    assert code == 1 and states["minesweeper"] == "wrong bytes" and states["cora"] == "absent"


def test_verify_without_names_reports_absent_files_and_passes(own_folder, capsys):
    assert run(["datasets", "verify"]) == 0
    assert "absent" in capsys.readouterr().out
    assert run(["datasets", "verify", "cora"]) == 1


def test_stats_reproduces_the_papers_node_homophily_over_directed_edges(benchmark_files, capsys):
    assert run(["datasets", "stats", "chameleon"]) == 0
    lines = capsys.readouterr().out.splitlines()
    homophily = next(line for line in lines if line.startswith("node homophily"))
    assert homophily.split()[2:5] == ["0.2471", "0.103", "0.1032"] and "directed list" in homophily
    code, answer = _json(capsys, "stats", "chameleon")
    assert code == 0 and answer["chameleon"]["edges"] == {
        "loaded": 31371,
        "paper": 36101,
        "counted_as_paper": None,
        "why": "directed list with its 50 self loops",
    }


def test_stats_without_files_measures_the_built_in_graphs(own_folder, capsys):
    code = run(["datasets", "stats", "--json"])
    captured = capsys.readouterr()
    assert code == 0 and set(json.loads(captured.out)) == {"csbm-homophilic", "csbm-heterophilic"}
    assert "not on disk: cora" in captured.err


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["fetch"], "name the data sets to fetch, or --all"),
        (["fetch", "cora", "--all"], "name the data sets to fetch, or --all"),
        (["fetch", "corra"], "unknown data set 'corra'; did you mean 'cora'"),
        (
            ["fetch", "cora", "--mirror", "/no/where"],
            "--mirror /no/where: neither an http(s) address nor a folder",
        ),
        (["verify", "corra"], "unknown data set 'corra'"),
        (["stats", "corra"], "unknown data set 'corra'"),
        (["stats", "cora"], "run `spgcl datasets fetch cora`"),
        (["stats", "--nonsense"], "No such option"),
    ],
)
def test_mistakes_are_one_line_and_exit_two(own_folder, capsys, arguments, message):
    assert run(["datasets", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and message in captured.err and captured.err.count("\n") == 1


def test_fetching_a_built_in_graph_says_so(own_folder, capsys):
    assert run(["datasets", "fetch", "csbm-homophilic"]) == 2
    assert "csbm-homophilic is generated, not fetched" in capsys.readouterr().err
