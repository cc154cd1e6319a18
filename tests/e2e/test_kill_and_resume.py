"""A real `spgcl fit` process, killed at random moments, interrupted, and continued."""

import json
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from commands import SPGCL, output, settings

from spgcl.cli import run

# Some seconds of training, so that a process can be killed in the middle of it.
FIT = [
    *(
        "fit",
        "csbm-heterophilic",
        "--method",
        "spgcl",
        "--steps",
        "400",
        "--threads",
        "1",
        "--device",
        "cpu",
        "--json",
    ),
    *settings(hidden=32, pool_size=256, seeds=32, hops=1),
    *("--checkpoint-every", "0.05"),
]


def start(out: Path, *more: str) -> subprocess.Popen[str]:
    command = [SPGCL, *FIT, "--out", str(out), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_new(path: Path, process: subprocess.Popen[str], before: int | None) -> None:
    """Wait until `path` is another file than it was; fail when the process ends first."""
    for _ in range(3000):
        if path.exists() and path.stat().st_mtime_ns != before:
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    raise AssertionError(f"{path} did not appear")


def modified(path: Path) -> int | None:
    return path.stat().st_mtime_ns if path.exists() else None


def fit(capsys, out: Path, *more: str) -> dict:
    return json.loads(output(capsys, *FIT, "--out", out, *more)[0])


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "run"
    assert run([*FIT, "--out", str(out)]) == 0
    return out


def contents(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_killed_at_random_moments_and_resumed_gives_the_same_bytes(tmp_path, uninterrupted, capsys):
    out, moments = tmp_path / "run", random.Random(7)
    checkpoint = out / "checkpoint.safetensors"
    for _ in range(3):
        before = modified(checkpoint)
        process = start(out, "--resume")
        wait_for_new(checkpoint, process, before)
        time.sleep(moments.uniform(0, 0.15))
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert json.loads((out / "run.json").read_text())["status"] == "running"
    answer = fit(capsys, out, "--resume")
    assert 0 < answer["resumed_from"] < answer["steps"] == 400
    record, whole = (json.loads((folder / "run.json").read_text()) for folder in (out, uninterrupted))
    assert record["resumed_from"] == answer["resumed_from"] and whole["resumed_from"] is None
    assert whole["command"] == ["spgcl", *FIT, "--out", str(uninterrupted)]
    assert record["history"] == whole["history"] and len(whole["history"]["loss"]) == 400
    for name in ("embeddings.parquet", "model.safetensors"):
        assert (out / name).read_bytes() == (uninterrupted / name).read_bytes()
    assert contents(out) == ["embeddings.parquet", "model.safetensors", "run.json"]


def test_ctrl_c_leaves_a_usable_run_that_resume_brings_to_the_same_bytes(tmp_path, uninterrupted, capsys):
    out = tmp_path / "run"
    process = start(out)
    wait_for_new(out / "checkpoint.safetensors", process, None)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert output == ""
    record = json.loads((out / "run.json").read_text())
    assert record["status"] == "interrupted" and 0 < record["steps"] < 400
    empty, asked, stopped = errors.splitlines()[:3]
    assert empty == "" and asked.startswith("note: ") and "Ctrl-C again" in asked
    assert stopped.startswith("note: ") and f"{record['steps']} steps" in stopped and "--resume" in stopped
    assert "Traceback" not in errors
    assert run(["similar", str(out), "0", "-k", "2", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2
    assert run(["eval", str(out), "--threads", "1", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["mean"] > 20
    noted = captured.err
    assert f"{record['steps']} of 400" in noted and "--resume" in noted and noted.count("\n") == 1
    file = str(tmp_path / "vectors.npy")
    assert run(["embed", str(out), "csbm-heterophilic", "--out", file]) == 0
    assert capsys.readouterr().err == noted
    answer = fit(capsys, out, "--resume")
    assert answer["resumed_from"] == record["steps"]
    assert (out / "embeddings.parquet").read_bytes() == (uninterrupted / "embeddings.parquet").read_bytes()
    assert "checkpoint.safetensors" not in contents(out)


def test_resume_on_a_finished_run_answers_the_same_at_once(uninterrupted, capsys):
    before = {path.name: path.read_bytes() for path in uninterrupted.iterdir()}
    started = time.perf_counter()
    first = fit(capsys, uninterrupted, "--resume")
    assert time.perf_counter() - started < max(1.0, first["seconds"]["train"] / 2)
    assert first == fit(capsys, uninterrupted, "--resume")
    assert first["steps"] == 400 and first["resumed_from"] is None
    assert {path.name: path.read_bytes() for path in uninterrupted.iterdir()} == before


def test_what_a_killed_process_left_half_written_goes_when_the_run_finishes(tmp_path, capsys):
    out = tmp_path / "run"
    out.mkdir()
    for name in (".run.json.part", ".checkpoint.safetensors.part"):
        (out / name).write_bytes(b"half")
    assert fit(capsys, out, "--resume", "--steps", "2")["resumed_from"] is None
    assert contents(out) == ["embeddings.parquet", "model.safetensors", "run.json"]
    # Killed between the last record and the removal of the checkpoint.
    (out / "checkpoint.safetensors").write_bytes(b"left over")
    fit(capsys, out, "--resume", "--steps", "2")
    assert contents(out) == ["embeddings.parquet", "model.safetensors", "run.json"]


@pytest.mark.parametrize(
    ("graph", "change", "parts"),
    [
        ("csbm-heterophilic", ["--steps", "500"], ["steps 400", "500;"]),
        ("csbm-heterophilic", ["--set", "hidden=16"], ["hidden 32", "16;"]),
        ("csbm-heterophilic", ["--seed", "1"], ["seed 0", "1;"]),
        ("csbm-heterophilic", ["--hold-out-edges", "0.1"], ["hold_out_edges 0.0", "0.1;"]),
        ("csbm-heterophilic", ["--threads", "2"], ["threads 1", "2;"]),
        ("csbm-heterophilic", ["--format", "csv"], ["embedding_format 'parquet'", "'csv';"]),
        ("csbm-homophilic", [], ["another graph", "'csbm-heterophilic'"]),
    ],
)
def test_resume_with_anything_else_is_refused(uninterrupted, capsys, graph, change, parts):
    before = {path.name: path.read_bytes() for path in uninterrupted.iterdir()}
    assert run([FIT[0], graph, *FIT[2:], "--out", str(uninterrupted), "--resume", *change]) == 2
    error = capsys.readouterr().err
    assert all(part in error for part in parts) and error.count("\n") == 1 and "--overwrite" in error
    assert {path.name: path.read_bytes() for path in uninterrupted.iterdir()} == before
