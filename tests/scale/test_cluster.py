"""A real Ray cluster of two nodes on this machine, whose processes are killed while they work."""

import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from commands import answer, refusal, settings
from graphs import make_graph
from stores import results_of, store_of

from spgcl.io.shards import shard

ON_DISK = ("--memory", "1KiB", "--threads", 1, "--device", "cpu", "--checkpoint-every", 0.05)
SMALL = settings(
    hidden=16, seeds=8, pool_size=32, hops=1, positives=2, negatives=10, batch_norm_rows="pool", fan_out=4
)


def test_options_of_another_engine(capsys, tmp_path, monkeypatch):
    assert "--workers 2" in refusal(capsys, "fit", "--workers", 2)
    assert "--address nowhere" in refusal(capsys, "fit", "--address", "nowhere")
    monkeypatch.setitem(sys.modules, "ray", None)
    assert "spgcl[scale]" in refusal(capsys, "fit", "--engine", "ray")


@pytest.fixture(scope="module")
def address():
    """A cluster of two nodes."""
    from ray.cluster_utils import Cluster

    # Only while it runs: other tests start processes that must not find the benchmarks.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        cluster.add_node(num_cpus=1)
        yield cluster.address
        cluster.shutdown()


def workers_of_this_test(doing):
    """Processes of the cluster that this test started."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if not (path / "cmdline").read_bytes().startswith(b"ray::" + doing):
                continue
            parent = int(path.name)
            while parent > 1 and parent != os.getpid():
                parent = int((Path("/proc") / str(parent) / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError):
            continue
        if parent == os.getpid():
            yield int(path.name)


def kill_while(moments, killed):
    """Kill a process of each kind when its moment has come."""
    for doing, there in moments:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if there() and (found := next(workers_of_this_test(doing), None)):
                os.kill(found, signal.SIGKILL)
                killed.append(doing)
                break
            time.sleep(0.001)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_killed_processes_change_nothing(capsys, tmp_path, address):
    graph = make_graph(4000, num_edges=16000)
    store = store_of(tmp_path, graph, block_rows=64)
    whole, out = tmp_path / "whole", tmp_path / "run"
    ray = ("--engine", "ray", "--workers", 2, "--address", address)
    fit = ("fit", store.folder, "--method", "spgcl", *ON_DISK, *SMALL, "--steps", 300)
    derived = store.folder / "derived"
    moments = [
        (b"_run", lambda: (derived / "l1-hop-1.journal").exists()),
        (b"Follower.follow", lambda: (out / "checkpoint.safetensors").exists()),
        (b"_run", lambda: shard(out / "embeddings", 2).exists()),
    ]
    killed = []
    thread = threading.Thread(target=kill_while, args=(moments, killed))
    thread.start()
    answer(capsys, *fit, *ray, "--out", out)
    thread.join()
    assert killed == [doing for doing, _ in moments]
    answer(capsys, *fit, *ray, "--out", whole)
    assert results_of(out) == results_of(whole)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_one_worker_is_the_plain_run(capsys, tmp_path, address):
    store = store_of(tmp_path, make_graph(400, num_edges=1600), block_rows=64)
    fit = ("fit", store.folder, *ON_DISK, *SMALL, "--method", "spgcl", "--steps", 20)
    answer(capsys, *fit, "--out", tmp_path / "plain")
    # What both compute from the store, each of them does.
    shutil.rmtree(store.folder / "derived")
    answer(
        capsys, *fit, "--engine", "ray", "--workers", 1, "--address", address, "--out", tmp_path / "worker"
    )
    assert results_of(tmp_path / "worker") == results_of(tmp_path / "plain")
