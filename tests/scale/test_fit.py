"""Runs on a graph that stays on disk are those on the same graph in memory."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from commands import answer, output, refusal, settings
from graphs import make_graph, write_csv
from stores import graph_and_store, store_of

from spgcl.io.embeddings import read_embeddings
from spgcl.io.shards import shard

ON_DISK = ("--memory", "1KiB")
SMALL = settings(hidden=16, seeds=8, pool_size=32, hops=1, positives=2, negatives=10, batch_norm_rows="pool")
FIT = ("--method", "spgcl", "--steps", 5, "--threads", 1, "--device", "cpu")


def fit(capsys, store, out, *more):
    return answer(capsys, "fit", store.folder, "--out", out, *FIT, *SMALL, *more)


def both(capsys, tmp_path, store, *more):
    """Losses, vectors and ids of a run in memory and of one on disk."""
    for out, memory in (("memory", ()), ("disk", ON_DISK)):
        fit(capsys, store, tmp_path / out, *memory, *more)
        record = json.loads((tmp_path / out / "run.json").read_text())
        yield record["history"]["loss"], *read_embeddings(tmp_path / out)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("fan_out", [0, 3, 100])
def test_training_and_embedding_on_disk_are_those_in_memory(capsys, tmp_path, weighted, directed, fan_out):
    _, store = graph_and_store(tmp_path, weighted=weighted, directed=directed)
    (losses, vectors, ids), disk = both(capsys, tmp_path, store, *settings(fan_out=fan_out))
    assert losses == disk[0] and len(losses) == 5
    np.testing.assert_allclose(vectors, disk[1], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(ids, disk[2])


@pytest.mark.parametrize(
    "more",
    [
        {"encoder": "gat"},
        {"encoder": "sage"},
        {"encoder": "gin"},
        {"encoder": "mlp"},
        {"layers": 3},
        {"layers": 1},
        {"normalise_features": "false"},
        {"pool": "lists", "fan_out": 2},
        {"negatives_from": "all"},
    ],
)
def test_every_encoder_on_disk(capsys, tmp_path, more):
    _, store = graph_and_store(tmp_path)
    memory, disk = both(capsys, tmp_path, store, *settings(**more))
    np.testing.assert_allclose(memory[0], disk[0], rtol=1e-5)
    np.testing.assert_allclose(memory[1], disk[1], rtol=1e-4, atol=1e-5)


def test_float16_similar_nodes_and_scores(capsys, tmp_path):
    graph = make_graph(100, num_edges=400)
    store = store_of(tmp_path, graph, half=True)
    fit(capsys, store, tmp_path / "run", *ON_DISK)
    found = answer(capsys, "similar", tmp_path / "run", 7, "-k", 3)
    vectors, ids = read_embeddings(tmp_path / "run")
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    order = np.argsort(-unit @ unit[7], kind="stable")
    assert [row["node"] for row in found] == ids[order[order != 7][:3]].tolist()
    rows = [[node, node % 3 if node % 2 else ""] for node in range(100)]
    labels = write_csv(tmp_path / "labels.csv", "id,label", rows)
    scores = answer(capsys, "eval", tmp_path / "run", "--labels", labels, "--threads", 1)
    fit(capsys, store, tmp_path / "memory")
    same = answer(capsys, "eval", tmp_path / "memory", "--labels", labels, "--threads", 1)
    assert abs(scores["mean"] - same["mean"]) < 6


@pytest.mark.parametrize(
    ("more", "part"),
    [
        (settings(batch_norm_rows="all"), "batch_norm_rows=pool"),
        (("--method", "grace"), "--memory"),
        (("--format", "npy"), "--format npy"),
        (("--hold-out-edges", "0.1"), "--hold-out-edges 0.1"),
    ],
)
def test_what_needs_the_graph_in_memory_is_refused(capsys, tmp_path, more, part):
    _, store = graph_and_store(tmp_path)
    small = ("--method", "spgcl", *settings(batch_norm_rows="pool")) if "grace" not in more else ()
    line = refusal(capsys, "fit", store.folder, "--out", tmp_path / "run", *ON_DISK, *small, *more)
    assert part in line
    assert not (tmp_path / "run").exists()


def test_other_commands_name_the_option(capsys, tmp_path):
    _, store = graph_and_store(tmp_path)
    line = refusal(capsys, "theory", "bound", store.folder, *ON_DISK)
    assert "--memory" in line and str(store.folder) in line
    line = refusal(capsys, "inspect", store.folder, "--directed")
    assert "--directed" in line
    assert "--memory" in refusal(capsys, "fit", store.folder, "--memory", "much")
    assert "--memory 1GiB" in refusal(capsys, "fit", tmp_path / "edges.csv", "--memory", "1GiB")


def test_an_altered_block_is_refused_before_training(capsys, tmp_path):
    _, store = graph_and_store(tmp_path)
    path = store.folder / "columns.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    line = refusal(capsys, "fit", store.folder, "--out", tmp_path / "run", *ON_DISK)
    assert str(path) in line


def test_a_run_killed_at_any_moment_continues_to_the_same_bytes(capsys, tmp_path):
    _, store = graph_and_store(tmp_path, num_nodes=2000, num_edges=8000)
    whole, out = tmp_path / "whole", tmp_path / "run"
    fit(capsys, store, whole, *ON_DISK, "--steps", 60)
    command = [sys.executable, "-m", "spgcl", "fit", store.folder, "--out", out, *FIT, *SMALL, *ON_DISK]
    command += ["--steps", "60", "--checkpoint-every", "0.05", "--resume", "--json"]
    for there in (out / "checkpoint.safetensors", shard(out / "embeddings", 3)):
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while not there.exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    first = shard(out / "embeddings", 3).stat().st_mtime_ns
    resumed = json.loads(output(capsys, *command[3:])[0])
    assert resumed["resumed_from"] == 60
    assert shard(out / "embeddings", 3).stat().st_mtime_ns == first
    for path in whole.rglob("*"):
        if path.is_file() and path.name != "run.json":
            assert (out / path.relative_to(whole)).read_bytes() == path.read_bytes(), path
    again = fit(capsys, store, out, *ON_DISK, "--steps", 60, "--resume")
    assert again["steps"] == 60


def test_a_page_is_made_of_a_graph_on_disk_that_memory_can_hold(capsys, tmp_path, monkeypatch):
    _, store = graph_and_store(tmp_path)
    fit(capsys, store, tmp_path / "run", *ON_DISK, "--report")
    assert "part-00001.parquet" in [path.name for path in (tmp_path / "run").rglob("*")]
    assert (tmp_path / "run" / "report.html").exists()
    monkeypatch.setattr("spgcl.engine.device.machine_memory", lambda: 2**10)
    for command in (
        ["report", tmp_path / "run"],
        ["fit", store.folder, "--out", tmp_path / "new", "--report"],
    ):
        assert str(store.folder) in refusal(capsys, *command)
    assert not (tmp_path / "new").exists()


def test_a_missing_file_of_vectors_is_named(capsys, tmp_path):
    _, store = graph_and_store(tmp_path)
    fit(capsys, store, tmp_path / "run", *ON_DISK)
    lost = shard(tmp_path / "run" / "embeddings", 2)
    lost.unlink()
    assert str(lost) in refusal(capsys, "similar", tmp_path / "run", 7)


@pytest.mark.parametrize("kind", [{}, {"weighted": True}, {"directed": True}])
def test_auto_on_disk_joins_the_channels_as_in_memory(capsys, tmp_path, kind):
    _, store = graph_and_store(tmp_path, **kind)
    found = []
    for out, memory in (("memory", ()), ("disk", ON_DISK)):
        answer(capsys, "fit", store.folder, "--out", tmp_path / out, "--method", "auto", *memory)
        record = json.loads((tmp_path / out / "run.json").read_text())
        found.append((read_embeddings(tmp_path / out)[0], record["findings"]))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-3, atol=1e-4)
    assert found[0][1] == found[1][1]
    assert not list((tmp_path / "disk").glob("*layers*"))


def test_auto_learns_from_a_part_of_a_large_graph(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("spgcl.scale.sample.NODES", 600)
    _, store = graph_and_store(tmp_path, num_nodes=900, num_edges=5000)
    line = output(capsys, "fit", store.folder, "--out", tmp_path / "run", "--method", "auto", *ON_DISK)[1]
    assert "600 of 900" in line
    assert np.isfinite(read_embeddings(tmp_path / "run")[0]).all()


def test_text_ids_are_written_with_the_vectors(capsys, tmp_path):
    rows = [[f"n {a}", f"n {(a * 7 + 1) % 60}"] for a in range(60)]
    write_csv(tmp_path / "edges.csv", "a,b", rows)
    answer(capsys, "ingest", tmp_path / "edges.csv", "--structural", "degree", "--out", tmp_path / "store")
    fit = ("fit", tmp_path / "store", *ON_DISK, "--method", "untrained", *settings(hidden=8))
    answer(capsys, *fit, "--out", tmp_path / "run")
    _, ids = read_embeddings(tmp_path / "run")
    assert sorted(ids.tolist()) == sorted({node for row in rows for node in row})
    found = answer(capsys, "similar", tmp_path / "run", "n 3", "-k", 2)
    assert len(found) == 2 and all(row["node"].startswith("n ") for row in found)
    assert "'n 99'" in refusal(capsys, "similar", tmp_path / "run", "n 99")


def test_what_ingest_changed_is_noted_once(capsys, tmp_path):
    edges = write_csv(
        tmp_path / "edges.csv", "a,b", [[0, 0], *([node, (node + 1) % 60] for node in range(60))]
    )
    store, run = tmp_path / "store", tmp_path / "run"
    made = output(capsys, "ingest", edges, "--structural", "degree", "--out", store)[1]
    assert "1 self loops" in made and "60 edges" in made
    for memory in ((), ON_DISK):
        given = ("--method", "untrained", *settings(hidden=8))
        fitted = output(capsys, "fit", store, "--out", run, *memory, *given, "--overwrite")[1]
        embedded = output(capsys, "embed", run, store, "--out", tmp_path / "vectors.npy", "--overwrite")[1]
        assert "self loops" not in fitted + embedded and "60 edges" not in fitted + embedded
    assert "1 self loops" in output(capsys, "inspect", store)[1]
