"""Graphs on disk: time and memory over sizes, agreement with training in memory, several processes.

Each command appends one line per measurement to results/store.jsonl.

python benchmarks/store.py growth 100000 1000000 10000000
python benchmarks/store.py growth 10000000 --memory 2GiB
python benchmarks/store.py agreement pubmed amazon-computers
python benchmarks/store.py ranks 1000000
python benchmarks/store.py rivals 100000 1000000

PecanPy needs an older NumPy: `pip install pecanpy` elsewhere and name that Python in PECANPY_PYTHON.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from pyarrow import csv, parquet
from record import RESULTS, command_line

from spgcl.experiments.results import append, machine

Record = dict[str, Any]
AVERAGE_DEGREE, NUM_FEATURES = 20, 32
_AT_ONCE = 2_000_000
FIT = ("fit", "--method", "spgcl")
# Batch norm must not use all rows, and a step must not grow with the graph.
SETTINGS = {"batch_norm_rows": "pool", "fan_out": 10, "hops": 2, "hidden": 64, "seeds": 128}
# What others are given; see benchmarks/store_rivals.py for their memory.
RIVAL_SECONDS = 180
# Runs of every engine; the median counts.
ROUNDS = 3
# Of both sides where they are compared.
BOUNDED = {"batch_norm_rows": "pool", "fan_out": 20, "hidden": 256}


def write_power_law(folder: Path, num_nodes: int, seed: int = 0) -> None:
    """Edges whose one end is drawn with probability ~ rank^-1/2, and normal features."""
    generator = np.random.default_rng(seed)
    names = generator.permutation(num_nodes)
    schema = pa.schema([("source", pa.int64()), ("target", pa.int64())])
    with parquet.ParquetWriter(folder / "edges.parquet", schema) as writer:
        for start in range(0, num_nodes * AVERAGE_DEGREE // 2, _AT_ONCE):
            count = min(_AT_ONCE, num_nodes * AVERAGE_DEGREE // 2 - start)
            ranks = (num_nodes * generator.random(count) ** 2).astype(np.int64)
            ends = {"source": names[ranks], "target": generator.integers(0, num_nodes, count)}
            writer.write_table(pa.table(ends))
    features = np.lib.format.open_memmap(folder / "features.npy", "w+", np.float32, (num_nodes, NUM_FEATURES))
    for start in range(0, num_nodes, _AT_ONCE):
        block: NDArray[np.float32] = features[start : start + _AT_ONCE]
        block[:] = generator.standard_normal(block.shape, dtype=np.float32)


def watched(command: Sequence[str]) -> Record:
    """Run a command; its seconds, those of its processors, and the largest resident sets in MiB.

    `anonymous` leaves out pages of files, which the system takes back when it needs them. Processes that the
    command starts are not counted.
    """
    started, before = time.perf_counter(), os.times()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    largest = {"resident": 0.0, "anonymous": 0.0}
    while process.poll() is None:
        for name, kibibytes in _resident(process.pid).items():
            largest[name] = max(largest[name], kibibytes / 1024)
        time.sleep(0.05)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed with code {process.returncode}")
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    output = process.stdout.read() if process.stdout else ""
    return {
        "seconds": round(time.perf_counter() - started, 2),
        "cpu_seconds": round(cpu, 2),
        "mib": {name: round(value) for name, value in largest.items()},
        "output": json.loads(output[output.index("{") :]),
    }


def _resident(pid: int) -> dict[str, float]:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return {}
    lines = dict(line.split(":", 1) for line in status.splitlines())
    keys = {"resident": "VmRSS", "anonymous": "RssAnon"}
    return {name: float(lines[key].split()[0]) for name, key in keys.items() if key in lines}


def spgcl(*arguments: object, launcher: Sequence[str] = ()) -> list[str]:
    """A command line of this package."""
    return [sys.executable, *launcher, "-m", "spgcl", *map(str, arguments), "--json"]


def silently(command: Sequence[str]) -> None:
    """Run a command without its output."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def at_once(commands: Sequence[Sequence[str]]) -> list[Record]:
    """What commands print that run at the same time."""
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    outputs = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        raise SystemExit(f"{' '.join(commands[0])} failed")
    return [json.loads(output[output.index("{") :]) for output in outputs]


def settings(values: dict[str, Any]) -> list[str]:
    """Hyper-parameters as options."""
    return [word for name, value in values.items() for word in ("--set", f"{name}={value}")]


def growth(arguments: argparse.Namespace, folder: Path) -> Iterator[Record]:
    """Ingest, fit and embed synthetic graphs that stay on disk."""
    given = {**SETTINGS, "steps": arguments.steps}
    for num_nodes in map(int, arguments.names):
        inputs = folder / str(num_nodes)
        inputs.mkdir()
        write_power_law(inputs, num_nodes)
        store, run = inputs / "store", inputs / "run"
        files = (inputs / "edges.parquet", "--features", inputs / "features.npy", "--out", store)
        ingested = watched(spgcl("ingest", *files, "--memory", arguments.memory))
        # Small graphs would be loaded.
        memory = arguments.memory if num_nodes >= 5_000_000 else "64MiB"
        fitted = watched(spgcl(*FIT, store, "--out", run, "--memory", memory, *settings(given)))
        seconds = fitted.pop("output")["seconds"]
        yield {
            "kind": "growth",
            "nodes": num_nodes,
            "edges": ingested.pop("output")["edges"],
            "memory": arguments.memory,
            "settings": given,
            "ingest": ingested,
            "fit": {**fitted, "phases": {name: round(value, 2) for name, value in seconds.items()}},
            "step_ms": step_milliseconds(store),
            "load": os.getloadavg()[0],
        }
        shutil.rmtree(inputs)


def step_milliseconds(store: Path, steps: int = 200) -> Record:
    """Wall-clock and processor time per step, after some for warming up."""
    from spgcl.methods import create
    from spgcl.scale.fit import prepare
    from spgcl.scale.store import open_store
    from spgcl.training.loop import train

    torch.set_num_threads(1)
    opened = open_store(store)
    method = create(
        "spgcl", NUM_FEATURES, num_nodes=opened.num_nodes, seed=0, settings={**SETTINGS, "steps": steps}
    )
    prepared = prepare(opened, method, memory=2**34)
    train(method, prepared, seed=1)
    wall, cpu = time.perf_counter(), time.process_time()
    train(method, prepared, seed=0)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"wall": round(1000 * wall / steps, 2), "cpu": round(1000 * cpu / steps, 2)}


def agreement(arguments: argparse.Namespace, folder: Path) -> Iterator[Record]:
    """Test scores of the same settings in memory and on disk."""
    from spgcl.datasets import load
    from spgcl.evaluation import probe
    from spgcl.io.embeddings import read_embeddings

    for name in arguments.names:
        dataset = load(name)
        write_graph(dataset.graph, folder / name)
        store, found = folder / name / "store", {}
        files = ("--features", folder / name / "features.npy", "--out", store)
        silently(spgcl("ingest", folder / name / "edges.parquet", *files))
        for where, memory in (("memory", "8GiB"), ("disk", "1MiB")):
            out = folder / name / where
            silently(spgcl(*FIT, store, "--out", out, "--memory", memory, *settings(BOUNDED)))
            vectors = read_embeddings(out)[0]
            found[where] = probe(vectors, dataset.labels, dataset.splits, metric=dataset.metric).mean
        yield {"kind": "agreement", "dataset": name, "settings": BOUNDED, "score": found}


def write_graph(graph: Any, folder: Path) -> None:
    """The files of a graph in memory."""
    folder.mkdir()
    sources = np.repeat(np.arange(graph.num_nodes), np.diff(graph.rows))
    parquet.write_table(pa.table({"source": sources, "target": graph.columns}), folder / "edges.parquet")
    features = graph.features
    np.save(folder / "features.npy", features.toarray() if hasattr(features, "toarray") else features)


def ranks(arguments: argparse.Namespace, folder: Path) -> Iterator[Record]:
    """Pools per second of one single-threaded process and of two: apart, by torchrun and on Ray."""
    (num_nodes,) = map(int, arguments.names)
    write_power_law(folder, num_nodes)
    files = ("--features", folder / "features.npy", "--out", folder / "store")
    silently(spgcl("ingest", folder / "edges.parquet", *files))
    given = settings({**SETTINGS, "hidden": 256, "steps": arguments.steps})
    torchrun = ("-m", "torch.distributed.run", "--nproc-per-node", "2")
    # Pools per step, processes that are started, and how. Two without a bond are as fast as two can be here.
    engines: dict[str, tuple[int, int, Sequence[str], Sequence[str]]] = {
        "one process": (1, 1, (), ()),
        "no engine": (1, 2, (), ()),
        "torchrun": (2, 1, torchrun, ()),
        "ray": (2, 1, (), ("--engine", "ray", "--workers", "2")),
    }
    rounds: dict[str, list[float]] = {name: [] for name in engines}
    # In turn, so that what else runs on the machine slows all of them.
    for number in range(ROUNDS):
        for name, (pools, count, launcher, more) in engines.items():
            outs = [folder / f"{name}-{number}-{index}".replace(" ", "-") for index in range(count)]
            fits = [
                (*FIT, folder / "store", "--out", out, "--memory", "64MiB", "--threads", 1, *given, *more)
                for out in outs
            ]
            printed = at_once([spgcl(*fit, launcher=launcher) for fit in fits])
            found = sum(pools * arguments.steps / one["seconds"]["train"] for one in printed)
            rounds[name].append(round(found, 2))
    for name, found in rounds.items():
        yield {
            "kind": "ranks",
            "nodes": num_nodes,
            "engine": name,
            "pools_per_second": median(found),
            "rounds": found,
        }


def rivals(arguments: argparse.Namespace, folder: Path) -> Iterator[Record]:
    """What a user would write instead, in a process of its own with a limit of memory and of time."""
    for num_nodes in map(int, arguments.names):
        inputs = folder / str(num_nodes)
        inputs.mkdir()
        write_power_law(inputs, num_nodes)
        for name in ("pyg", "networkx", "pecanpy"):
            python = os.environ.get("PECANPY_PYTHON") if name == "pecanpy" else sys.executable
            if python is None:
                continue
            if name == "pecanpy":
                # The format that it reads; it has no Parquet.
                plain = csv.WriteOptions(include_header=False, delimiter="\t")
                csv.write_csv(parquet.read_table(inputs / "edges.parquet"), inputs / "edges.edg", plain)
            started = time.perf_counter()
            command = [python, str(Path(__file__).with_name("store_rivals.py")), name, str(inputs)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            largest = 0.0
            while process.poll() is None and time.perf_counter() - started < RIVAL_SECONDS:
                largest = max(largest, _resident(process.pid).get("resident", 0.0) / 1024)
                time.sleep(0.05)
            outcome = {0: "done", None: "time"}.get(process.poll(), "memory")
            process.kill()
            output, _ = process.communicate()
            yield {
                "kind": "rivals",
                "rival": name,
                "nodes": num_nodes,
                "outcome": outcome,
                "seconds": round(time.perf_counter() - started, 1),
                "resident_mib": round(largest),
                "phases": {
                    name: value for line in output.splitlines() for name, value in json.loads(line).items()
                },
            }
        shutil.rmtree(inputs)


KINDS = {"growth": growth, "agreement": agreement, "ranks": ranks, "rivals": rivals}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=list(KINDS))
    parser.add_argument("names", nargs="+", help="numbers of nodes, or data sets")
    parser.add_argument("--memory", default="4GiB")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--results", type=Path, default=RESULTS / "store.jsonl")
    parser.add_argument("--work", type=Path, help="folder for the graphs (default: a temporary one)")
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        for record in KINDS[arguments.kind](arguments, Path(folder)):
            where = machine(torch.device("cpu"))
            # Where the graphs lay for a while changes no result either.
            command = command_line("store.py", arguments.results).replace(f" --work {arguments.work}", "")
            append(arguments.results, {**record, **where, "command": command})
            print(json.dumps(record))


if __name__ == "__main__":
    main()
