"""Several processes train one method: their gradients are averaged, and a seed decides the result."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from commands import answer, settings
from graphs import CPU
from stores import graph_and_store, results_of

from spgcl.io.embeddings import read_embeddings
from spgcl.methods import create
from spgcl.runs.record import load_method
from spgcl.scale.fit import prepare
from spgcl.training.loop import draws

SETTINGS = {"hidden": 16, "seeds": 8, "pool_size": 32, "hops": 1, "positives": 2, "negatives": 10}
SETTINGS |= {"batch_norm_rows": "pool", "fan_out": 4, "steps": 40, "learning_rate": 0.01}
FIT = (
    "--method",
    "spgcl",
    "--threads",
    "1",
    "--device",
    "cpu",
    "--memory",
    "1KiB",
    "--seed",
    "3",
    "--checkpoint-every",
    "0.05",
)
pytestmark = pytest.mark.slow


def trained_alone(store, ranks):
    """Naive: a process that takes the steps of all others itself."""
    method = create("spgcl", store.num_features, num_nodes=store.num_nodes, seed=3, settings=SETTINGS)
    prepared = prepare(store, method, memory=0)
    generators, optimiser = [draws(3, CPU, rank) for rank in range(ranks)], method.optimiser()
    for step in range(SETTINGS["steps"]):
        before = {name: value.clone() for name, value in method.named_buffers()}
        gradients, buffers = [], []
        for generator in generators:
            method.load_state_dict(before, strict=False)
            optimiser.drop_gradients()
            method.loss(prepared, step, generator).backward()
            gradients.append([weight.grad for weight in method.trained_weights()])
            buffers.append({name: value.clone() for name, value in method.named_buffers()})
        for weight, *parts in zip(method.trained_weights(), *gradients, strict=True):
            weight.grad = sum(parts) / ranks
        method.load_state_dict(
            {name: sum(part[name] for part in buffers) / ranks for name in before}, strict=False
        )
        optimiser.step()
    return method


def launch(store, out, *more, count=2):
    given = settings(**SETTINGS)
    command = ["-m", "torch.distributed.run", "--nproc-per-node", count, "-m", "spgcl", "fit", store.folder]
    return subprocess.Popen(
        [sys.executable, *map(str, [*command, "--out", out, *FIT, *given, *more])],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_two_processes_average_their_gradients_and_continue_after_a_kill(tmp_path):
    _, store = graph_and_store(tmp_path, num_nodes=3000, num_edges=9000)
    out = tmp_path / "run"
    process = launch(store, out)
    while not (out / "checkpoint.safetensors").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    process = launch(store, out, "--resume")
    assert process.wait() == 0, process.communicate()
    process.communicate()
    expected, found = trained_alone(store, 2), load_method(out)
    for name, value in expected.state_dict().items():
        np.testing.assert_allclose(found.state_dict()[name], value, rtol=1e-4, atol=1e-5, err_msg=name)
    vectors = found.encoder.embed(found.prepare(store.load(), CPU).graph)
    np.testing.assert_allclose(read_embeddings(out)[0], vectors, rtol=1e-4, atol=1e-5)


def test_one_process_of_torchrun_is_the_plain_run(capsys, tmp_path):
    _, store = graph_and_store(tmp_path, num_nodes=300, num_edges=900)
    fit = ("fit", store.folder, *FIT, *settings(**SETTINGS))
    answer(capsys, *fit, "--out", tmp_path / "plain")
    process = launch(store, tmp_path / "one", count=1)
    assert process.wait() == 0, process.communicate()
    process.communicate()
    assert results_of(tmp_path / "one") == results_of(tmp_path / "plain")


def test_an_altered_block_ends_all_processes_with_a_line_each(tmp_path):
    _, store = graph_and_store(tmp_path)
    path = store.folder / "columns.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    process = launch(store, tmp_path / "run")
    _, printed = process.communicate()
    lines = [line for line in printed.splitlines() if line.startswith("spgcl: ")]
    assert process.returncode and len(lines) == 2
    assert any(str(path) in line for line in lines) and not any("RuntimeError" in line for line in lines)
    assert not (tmp_path / "run").exists()
