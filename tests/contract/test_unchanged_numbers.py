"""Embeddings of every method and scores of both probes are what they were.

On a machine of the recorded kind the bytes are compared, elsewhere a few projections of the embeddings, as
another processor rounds differently. `python tests/contract/test_unchanged_numbers.py record` records them
again; do that only for a change of numbers that the changelog explains.
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import spgcl
from spgcl.evaluation import tuned_probe
from spgcl.methods import parameters

RECORD = Path(__file__).with_name("unchanged_numbers.json")
GRAPHS = ("csbm-heterophilic", "csbm-homophilic")
SIZES = {"hidden": 16, "steps": 3, "walks": 2, "walk_length": 8, "window": 2}


def kind_of_machine():
    """What the bytes of a result depend on besides the code: BLAS differs per family of processors."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    processor = dict(line.split("\t", 1) for line in reversed(lines) if "\t" in line)
    facts = [processor.get(name, "").strip("\t: ") for name in ("model name", "cpu family", "model")]
    return " ".join([*facts, torch.backends.cpu.get_cpu_capability(), torch.__version__])


def embed(method, dataset):
    settings = {name: size for name, size in SIZES.items() if name in parameters(spgcl.METHODS[method])}
    embedder = spgcl.Embedder(method, seed=7, device="cpu", **settings)
    vectors = embedder.fit_transform(dataset, dataset.labels)
    directions = np.random.default_rng(0).normal(size=(3, len(vectors))) / len(vectors) ** 0.5
    # Lengths, because the sign of an eigenvector is arbitrary.
    values = np.linalg.norm(directions @ vectors.astype(np.float64), axis=1)
    return {"digest": hashlib.sha256(vectors.tobytes()).hexdigest()[:16], "values": values.tolist()}


def score(name, dataset):
    probe = {"probe": spgcl.probe, "tuned_probe": tuned_probe}[name]
    scores = probe(np.array(dataset.graph.features), dataset.labels, dataset.splits)
    values = [split.test for split in scores.splits]
    return {"digest": hashlib.sha256(np.array(values).tobytes()).hexdigest()[:16], "values": values}


def outcomes():
    """Every method and probe on every graph, with the threads of this process."""
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    found = {"machine": kind_of_machine()}
    for name in GRAPHS:
        dataset = spgcl.load(name)
        found |= {f"{method} on {name}": embed(method, dataset) for method in spgcl.METHODS}
        found |= {f"{probe} on {name}": score(probe, dataset) for probe in ("probe", "tuned_probe")}
    return found


def outcomes_with(threads):
    # A process of its own: NumPy's and SciPy's libraries take their number of threads when they are loaded.
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run([sys.executable, __file__], env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("threads", [1, 2])
def test_numbers_are_those_recorded(threads):
    known, found = json.loads(RECORD.read_text())[str(threads)], outcomes_with(threads)
    same_machine = found.pop("machine") == known.pop("machine")
    assert found.keys() == known.keys()
    for name, now in found.items():
        tolerance = {"atol": 2} if "probe" in name else {"rtol": 0.02}
        np.testing.assert_allclose(now["values"], known[name]["values"], err_msg=name, **tolerance)
    if same_machine:
        assert [name for name in found if found[name]["digest"] != known[name]["digest"]] == []


if __name__ == "__main__":
    if sys.argv[1:] == ["record"]:
        RECORD.write_text(
            json.dumps({threads: outcomes_with(threads) for threads in (1, 2)}, indent=1) + "\n"
        )
    else:
        print(json.dumps(outcomes()))
