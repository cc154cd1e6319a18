"""Structure-aware mutation of everything that spgcl reads: files of users and of runs, options, settings.

Whatever is given, a command succeeds, or refuses with exit code 2 and one line that a terminal can show.
`python tests/fuzzing.py --cases 10000` tries so many and prints one line of JSON per target. What is found
becomes an `@example` or a test.
"""

import argparse
import contextlib
import gzip
import io
import json
import os
import pickle
import shutil
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import safetensors
import safetensors.torch
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from pyarrow import parquet
from scipy import sparse

NODES = 24
WIDTH = 3
# What parts of records, cells and settings are exchanged for.
ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 7, 2**31, 2**63, 2**70, -(2**70), 0.5, -0.0, 1e-300, 1e308),
    *(
        float("nan"),
        float("inf"),
        "",
        " ",
        "x",
        "0",
        "-1",
        "nan",
        "é",
        "\x1b[31m",
        "a\nb",
        "\0",
        "\ud800",
        "../x",
    ),
    *([], {}, [[]], [None], [0], {"a": 1}, {"": None}, "x" * 300, [1, 2, 3], ["x", "y"]),
]
odd = st.sampled_from(ODD)
# Exit codes of the commands so far.
OUTCOMES: Counter[int] = Counter()


class Workplace:
    """A graph with labels in many formats, a run of each format of embeddings, an unfinished run."""

    def __init__(self, home: Path) -> None:
        from spgcl.face import progress

        # However slow the machine is, only what a command says in the end counts.
        progress.EVERY = float("inf")
        self.home, self.trial = home, home / "trial"
        generator = np.random.default_rng(0)
        self.edges = np.unique(generator.integers(0, NODES, (60, 2)), axis=0)
        self.features = generator.normal(size=(NODES, WIDTH)).astype(np.float32)
        self.inputs = home / "inputs"
        self.inputs.mkdir()
        self._write_inputs()
        fit = ["fit", self.inputs / "edges.csv", "--features", self.inputs / "features.csv", "--threads", 1]
        fit += ["--labels", self.inputs / "labels.csv", "--method", "spgcl", "--steps", 2]
        fit += ["--set", "hidden=4", "--observe", 1]
        self.fit = [*fit, "--hold-out-edges", 0.1, "--checkpoint-every", 0]
        for kind in ("parquet", "npy", "csv"):
            assert command(*self.fit, "--format", kind, "--out", home / kind)[0] == 0
        assert command("report", home / "parquet", "--projection", "pca", "--threads", 1)[0] == 0
        self._stop()

    def _write_inputs(self) -> None:
        rows = "".join(f"{source},{target}\n" for source, target in self.edges.tolist())
        nodes = [f"{node},{','.join(map(str, row))}\n" for node, row in enumerate(self.features.tolist())]
        labels = "".join(f"{node},{'ab'[node % 2]}\n" for node in range(NODES))
        texts = {
            "edges.csv": f"source,target\n{rows}",
            "edges.tsv": rows.replace(",", "\t"),
            "edges.txt": "# a comment\n" + rows.replace(",", " "),
            "features.csv": f"node,{','.join(f'c{i}' for i in range(WIDTH))}\n{''.join(nodes)}",
            "labels.csv": f"node,label\n{labels}",
            "graph.graphml": _graphml(self.edges.tolist()),
        }
        for name, text in texts.items():
            (self.inputs / name).write_text(text)
        (self.inputs / "edges.csv.gz").write_bytes(gzip.compress(texts["edges.csv"].encode()))
        np.save(self.inputs / "features.npy", self.features)
        np.save(self.inputs / "labels.npy", np.arange(NODES) % 2)
        adjacency = sparse.csr_array((np.ones(len(self.edges)), self.edges.T), shape=(NODES, NODES))
        csr = {f"adj_{name}": getattr(adjacency, name) for name in ("data", "indices", "indptr", "shape")}
        np.savez(self.inputs / "graph.npz", **csr, attr_matrix=self.features, labels=np.arange(NODES) % 2)
        np.savez(self.inputs / "edges.npz", edges=self.edges, node_features=self.features)
        columns = {"source": self.edges[:, 0], "target": self.edges[:, 1]}
        parquet.write_table(pa.table(columns), self.inputs / "edges.parquet")
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(self.features.ravel()), WIDTH)
        parquet.write_table(
            pa.table({"node": np.arange(NODES), "x": vectors}), self.inputs / "features.parquet"
        )
        parquet.write_table(
            pa.table({"node": np.arange(NODES), "y": pa.array(["a", "b"] * (NODES // 2))}),
            self.inputs / "labels.parquet",
        )
        saved = {"x": torch.tensor(self.features), "edge_index": torch.tensor(self.edges.T)}
        torch.save({**saved, "y": torch.arange(NODES) % 2}, self.inputs / "graph.pt")
        (self.inputs / "pickle.pkl").write_bytes(
            pickle.dumps([sparse.csr_matrix(adjacency), {1: [2, 3]}, self.features], protocol=2)
        )

    def _stop(self) -> None:
        """A run that was stopped after its first step: results, and a checkpoint."""
        from contextlib import contextmanager

        from spgcl.cli import watching

        before = watching.stopping

        @contextmanager
        def stopping(**_: object):
            yield lambda: True

        watching.stopping = stopping
        assert command(*self.fit, "--steps", 4, "--out", self.home / "half")[0] == 130
        watching.stopping = before

    def copy(self, name: str) -> Path:
        """A run to damage, always in the same folder."""
        shutil.rmtree(self.trial, ignore_errors=True)
        self.trial.mkdir()
        return Path(shutil.copytree(self.home / name, self.trial / "run"))


def _graphml(edges: list[list[int]]) -> str:
    nodes = "".join(f'<node id="n{node}"><data key="d0">{node / 7}</data></node>' for node in range(NODES))
    lines = "".join(f'<edge source="n{source}" target="n{target}"/>' for source, target in edges)
    key = '<key id="d0" for="node" attr.name="x" attr.type="double"/>'
    xmlns = "http://graphml.graphdrawing.org/xmlns"
    return f'<graphml xmlns="{xmlns}">{key}<graph edgedefault="undirected">{nodes}{lines}</graph></graphml>'


def command(*arguments: object) -> tuple[int, str]:
    """The exit code of a command in this process, and what it wrote to stderr."""
    from spgcl.cli import run

    said = io.StringIO()
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(said),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        return run([*map(str, arguments)]), said.getvalue()


def holds(*arguments: object) -> None:
    """A command succeeds, or refuses in one line that a terminal can show."""
    code, said = command(*arguments)
    lines = [line for line in said.split("\n")[:-1] if not line.startswith("note: ")]
    OUTCOMES[code] += 1
    refused = code == 2 and len(lines) == 1 and lines[0].startswith("spgcl: ")
    assert (refused or (code == 0 and not lines)) and all(map(str.isprintable, lines)), (
        arguments,
        code,
        said,
    )


# Mutations of bytes, of JSON, of arrays.


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Bytes with a part cut off, changed, doubled or zeroed."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, max(0, len(content) - 1)))
        stop = draw(st.integers(start, min(len(content), start + 64)))
        middle = draw(
            st.sampled_from(
                [
                    b"",
                    content[start:stop] * 2,
                    bytes(stop - start),
                    b"\xff" * 4,
                    b"\n",
                    b",,",
                    b'"',
                    b"<",
                    b"-",
                    b"9" * 30,
                ]
            )
            | st.binary(max_size=8)
        )
        rest = b"" if draw(st.integers(0, 5)) == 0 else content[stop:]
        content = content[:start] + middle + rest
    return content


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all parts of a record, with only a few of a long list."""
    found = [path] if path else []
    if isinstance(value, dict):
        inside = list(value.items())
    elif isinstance(value, list):
        inside = list(enumerate(value))[:3]
    else:
        inside = []
    return found + [one for key, entry in inside for one in places(entry, (*path, key))]


@st.composite
def mutated(draw: st.DrawFn, record: Any) -> Any:
    """A record with parts removed, renamed, or exchanged for odd ones."""
    record = json.loads(json.dumps(record))
    for _ in range(draw(st.integers(1, 3))):
        paths = places(record)
        if not paths:
            break
        *outer, last = draw(st.sampled_from(paths))
        inner = record
        for key in outer:
            inner = inner[key]
        kind = draw(st.sampled_from(["odd", "odd", "remove", "rename", "number"]))
        if kind == "remove":
            del inner[last]
        elif kind == "rename" and isinstance(inner, dict):
            inner[draw(st.sampled_from(["x", "", "format", last.upper()]))] = inner.pop(last)
        elif kind == "number" and type(inner[last]) in (int, float):
            inner[last] = draw(st.integers(-3, 3) | st.floats() | st.just(inner[last] * 10**6))
        else:
            inner[last] = deepcopy(draw(odd))
    return record


DTYPES = [
    "float32",
    "float64",
    "int64",
    "int8",
    "uint8",
    "bool",
    "complex64",
    "float16",
    "S3",
    "U4",
    "M8[s]",
    "u8",
]


@st.composite
def arrays(draw: st.DrawFn, array: np.ndarray) -> np.ndarray:
    """An array of another type, another shape, or with odd numbers in it."""
    array = array.copy()
    kind = draw(st.sampled_from(["type", "shape", "cut", "number", "empty", "object"]))
    if kind == "type":
        with np.errstate(all="ignore"), contextlib.suppress(TypeError, ValueError):
            array = array.astype(draw(st.sampled_from(DTYPES)))
    elif kind == "shape":
        array = draw(
            st.sampled_from([array.ravel(), array[None], array.T, np.atleast_2d(array).T, array.ravel()[0]])
        )
    elif kind == "cut":
        array = array[: draw(st.integers(0, len(array)))] if array.ndim else array
    elif kind == "number" and array.size and array.dtype.kind in "iuf":
        value = draw(
            st.sampled_from(
                [np.nan, np.inf, -1, 10**6, 1e38, -(2**40)] if array.dtype.kind == "f" else [-1, 10**6, 2**40]
            )
        )
        with np.errstate(all="ignore"):
            array.ravel()[draw(st.integers(0, array.size - 1))] = np.array(value).astype(array.dtype)
    elif kind == "empty":
        array = np.zeros(draw(st.sampled_from([0, (0, 3), (3, 0), (1, 1), (0, 0, 0)])), dtype=array.dtype)
    elif kind == "object":
        array = np.array([None, "x"], dtype=object)
    return array


# Targets: each takes the workplace and hypothesis' data.


def records_of_runs(place: Workplace, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["run.json", "run.json", "eval.json", "baselines.json"]))
    half = name == "run.json" and data.draw(st.booleans())
    folder = place.copy("half" if half else "parquet")
    path = folder / name
    if data.draw(st.integers(0, 4)) == 0:
        path.write_bytes(data.draw(damaged(path.read_bytes())))
    else:
        record = data.draw(mutated(json.loads(path.read_text())))
        path.write_text(json.dumps(record), encoding="utf-8")
    uses = (
        ["compare"]
        if name == "eval.json"
        else ["report"]
        if name == "baselines.json"
        else ["similar", "resume", "embed", "eval", "compare"]
    )
    _use(place, folder, data.draw(st.sampled_from(uses)))


def _use(place: Workplace, folder: Path, use: str) -> None:
    if use == "similar":
        holds("similar", folder, 3)
    elif use == "resume":
        holds(*place.fit, "--steps", 4, "--out", folder, "--resume")
    elif use == "embed":
        graph = place.inputs / "edges.csv", "--features", place.inputs / "features.csv"
        holds("embed", folder, *graph, "--out", place.trial / "vectors.npy", "--overwrite")
    elif use == "eval":
        holds("eval", folder, "--threads", 1, "--protocol", "tuned")
    elif use == "compare":
        holds("report", folder, place.home / "npy", "--out", place.trial / "page.html", "--threads", 1)
    else:
        holds("report", folder, "--projection", "pca", "--threads", 1)


def tensors_of_runs(place: Workplace, data: st.DataObject) -> None:
    folder = place.copy("half")
    name, use = data.draw(
        st.sampled_from([("model.safetensors", "embed"), ("checkpoint.safetensors", "resume")])
    )
    path = folder / name
    if data.draw(st.booleans()):
        path.write_bytes(data.draw(damaged(path.read_bytes())))
    else:
        with safetensors.safe_open(path, framework="pt") as file:
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            metadata = json.loads(file.metadata()["spgcl"])
        key = data.draw(st.sampled_from(sorted(tensors)))
        change = data.draw(st.sampled_from(["drop", "rename", "array", "metadata", "add"]))
        if change in ("drop", "rename"):
            tensor = tensors.pop(key)
            tensors |= {"another": tensor} if change == "rename" else {}
        elif change == "array":
            with contextlib.suppress(TypeError, ValueError):
                tensors[key] = torch.from_numpy(np.ascontiguousarray(data.draw(arrays(tensors[key].numpy()))))
        elif change == "add":
            tensors["another"] = torch.zeros(3)
        else:
            metadata = data.draw(mutated(metadata))
        if data.draw(st.booleans()) and isinstance(metadata, dict) and "digest" in metadata:
            from spgcl.runs.record import _digest

            metadata["digest"] = _digest(tensors)
        path.write_bytes(safetensors.torch.save(tensors, {"spgcl": json.dumps(metadata)}))
    _use(place, folder, use)


def arrays_of_runs(place: Workplace, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["parquet", "npy", "csv"]))
    folder = place.copy(kind)
    names = {"parquet": ["embeddings.parquet", "held_out_edges.npz"], "npy": ["embeddings.npy", "nodes.txt"]}
    path = folder / data.draw(st.sampled_from(names.get(kind, ["embeddings.csv"])))
    if path.suffix in (".csv", ".txt") or data.draw(st.booleans()):
        path.write_bytes(data.draw(damaged(path.read_bytes())))
    else:
        _rewrite(path, data)
    _use(place, folder, data.draw(st.sampled_from(["similar", "similar", "eval", "compare"])))


def _rewrite(path: Path, data: st.DataObject) -> None:
    """The same file with another content, as its format allows."""
    if path.suffix == ".npy":
        np.save(path, data.draw(arrays(np.load(path))), allow_pickle=True)
    elif path.suffix == ".npz":
        with np.load(path) as stored:
            content = dict(stored)
        name = data.draw(st.sampled_from(sorted(content)))
        if data.draw(st.booleans()):
            content[name] = data.draw(arrays(content[name]))
        else:
            del content[name]
        np.savez(path, **content)
    else:
        _rewrite_table(path, data)


def _rewrite_table(path: Path, data: st.DataObject) -> None:
    table = parquet.read_table(path)
    name = data.draw(st.sampled_from(table.column_names))
    index = table.column_names.index(name)
    others = [
        *(
            pa.array([None] * len(table), type=kind)
            for kind in (pa.null(), pa.int64(), pa.string(), pa.list_(pa.float32()))
        ),
        *(
            pa.array(range(len(table))).cast(kind)
            for kind in (
                pa.int8(),
                pa.uint64(),
                pa.float32(),
                pa.string(),
                pa.timestamp("s"),
                pa.decimal128(30, 2),
            )
        ),
        pa.array([str(i % 3) for i in range(len(table))]).cast(pa.string_view()),
        pa.array([str(i % 3) for i in range(len(table))]).dictionary_encode(),
        pa.array([[float(i)] * (i % 3) for i in range(len(table))]),
        pa.array([[0.5, None]] * len(table), type=pa.list_(pa.float32(), 2)),
        pa.array([{"a": i} for i in range(len(table))]),
        pa.array([b"\xff"] * len(table)),
        pa.array([i % 2 == 0 for i in range(len(table))]),
        pa.array([float("nan")] * len(table)),
    ]
    change = data.draw(st.sampled_from(["column", "column", "column", "drop", "double", "rows", "name"]))
    if change == "column":
        table = table.set_column(index, name, data.draw(st.sampled_from(others)))
    elif change == "drop":
        table = table.drop_columns([name])
    elif change == "double":
        table = table.append_column(name, table[name])
    elif change == "rows":
        table = table.slice(0, data.draw(st.integers(0, len(table))))
    else:
        table = table.rename_columns(
            [data.draw(st.sampled_from(["", "node", "é\x1b", "x"])) for _ in table.column_names]
        )
    with contextlib.suppress(pa.ArrowException):
        parquet.write_table(table, path)


def files_of_users(place: Workplace, data: st.DataObject) -> None:
    names = sorted(path.name for path in place.inputs.iterdir() if path.suffix != ".pkl")
    name = data.draw(st.sampled_from(names))
    shutil.rmtree(place.trial, ignore_errors=True)
    place.trial.mkdir()
    path = Path(shutil.copy(place.inputs / name, place.trial / name))
    plain = path.suffix in (".npy", ".npz", ".parquet") and data.draw(st.booleans())
    if plain:
        _rewrite(path, data)
    elif path.suffix == ".gz" and data.draw(st.booleans()):
        path.write_bytes(gzip.compress(data.draw(damaged(gzip.decompress(path.read_bytes())))))
    else:
        path.write_bytes(data.draw(damaged(path.read_bytes())))
    edges, features = place.inputs / "edges.csv", place.inputs / "features.csv"
    if name.startswith("features"):
        holds("inspect", edges, "--features", path)
    elif name.startswith("labels"):
        holds("inspect", edges, "--features", features, "--labels", path)
    else:
        more = ["--features", features] if name.startswith("edges") and path.suffix != ".npz" else []
        holds("inspect", path, *more)


def options_of_commands(place: Workplace, data: st.DataObject) -> None:
    text = st.sampled_from([str(value) for value in ODD if "\0" not in str(value)]) | st.text(
        max_size=6
    ).filter(lambda value: "\0" not in value)
    known = {
        "inspect": [
            "--features",
            "--structural",
            "--source",
            "--target",
            "--weight",
            "--id",
            "--labels",
            "--attributes",
        ],
        "fit": [
            "--seed",
            "--seeds",
            "--threads",
            "--format",
            "--hold-out-edges",
            "--device",
            "--preset",
            "--method",
            "--observe",
            "--checkpoint-every",
            "--precision",
        ],
        "similar": ["-k"],
        "eval": ["--protocol", "--labels", "--device", "--threads"],
        "embed": ["--out", "--id", "--device"],
        "report": ["--nodes", "--id", "--projection", "--out"],
    }
    name = data.draw(st.sampled_from(sorted(known)))
    given_ = [
        part
        for option in data.draw(st.lists(st.sampled_from(known[name]), max_size=3))
        for part in (option, data.draw(text))
    ]
    folder = place.copy("parquet")
    graph = data.draw(text | st.just(str(place.inputs / "edges.csv")))
    if name == "fit":
        # What is given first is what is asked for; the method and the steps bound the time.
        holds(
            "fit",
            place.inputs / "edges.csv",
            "--structural",
            "degree",
            "--seeds",
            1,
            *_cheap(given_),
            "--method",
            "raw",
            "--out",
            place.trial / "new",
        )
    elif name == "inspect":
        holds("inspect", graph, *given_)
    elif name == "similar":
        holds("similar", folder, data.draw(text), *given_)
    elif name == "embed":
        with contextlib.chdir(place.trial):
            holds("embed", folder, graph, "--out", "v.npy", *given_)
    elif name == "eval":
        holds("eval", folder, "--protocol", "tuned", *given_)
    else:
        with contextlib.chdir(place.trial):
            holds("report", folder, place.home / "npy", "--out", "page.html", *given_)


def _cheap(given_: list[str]) -> list[str]:
    """Without what would train for hours because it was asked for."""
    return [part for index, part in enumerate(given_) if "--seeds" not in (part, given_[max(0, index - 1)])]


def settings_of_methods(place: Workplace, data: st.DataObject) -> None:
    from spgcl.methods import METHODS, find, parameters

    name = data.draw(st.sampled_from(sorted(METHODS)))
    known = [one for one in parameters(find(name)) if one != "steps"]
    small = st.sampled_from(
        ["0", "1", "2", "3", "-1", "0.5", "1e-9", "nan", "inf", "x", "", "yes", "no", "none", "1.5", "2e0"]
    )
    huge = st.sampled_from([str(2**31), str(2**63), str(2**70), "1e308", "9" * 400])
    chosen = data.draw(st.lists(st.sampled_from(known), max_size=3, unique=True)) if known else []
    pairs = [f"{one}={data.draw(small)}" for one in chosen]
    if known and data.draw(st.integers(0, 3)) == 0:
        # Only checked: a huge number of walks is no mistake.
        from spgcl.errors import InputError
        from spgcl.methods import resolved_settings

        with contextlib.suppress(InputError):
            resolved_settings(name, None, "x", {data.draw(st.sampled_from(known)): data.draw(huge)})
        return
    steps = ["--set", "steps=1"] if "steps" in parameters(find(name)) else []
    small_ = [
        f"--set={one}=4"
        for one in ("hidden", "walks", "walk_length", "pool_size", "epochs")
        if one in known and one not in chosen
    ]
    labels = ["--labels", place.inputs / "labels.csv"] if find(name).supervised else []
    shutil.rmtree(place.trial, ignore_errors=True)
    given_ = [part for pair in pairs for part in ("--set", pair)]
    edges = place.inputs / "edges.csv", "--features", place.inputs / "features.csv"
    holds(
        "fit",
        *edges,
        *labels,
        "--method",
        name,
        *small_,
        *given_,
        *steps,
        "--threads",
        1,
        "--out",
        place.trial / "run",
    )


def pickles_of_benchmarks(place: Workplace, data: st.DataObject) -> None:
    from spgcl.datasets.unpickle import load_pickle, load_pickled_array
    from spgcl.errors import InputError

    path = place.home / "p.pkl"
    path.write_bytes(data.draw(damaged((place.inputs / "pickle.pkl").read_bytes())))
    for load in (load_pickle, load_pickled_array):
        with contextlib.suppress(InputError):
            load(path)


def addresses_of_mirrors(place: Workplace, data: st.DataObject) -> None:
    hosts = st.sampled_from(
        ["127.0.0.1:9", "[::1]:9", "[bad", "", "h:99999999", "a b", "\x1b", "127.0.0.1:-1", "é.invalid:9"]
    )
    scheme = st.sampled_from(["http://", "https://", "file://", "ftp://", "", "http:/", "data:,"])
    address = (
        data.draw(scheme)
        + data.draw(hosts | st.text(max_size=8))
        + data.draw(st.sampled_from(["", "/", "/x", "/%00", "?#"]))
    )
    from spgcl.datasets import fetch as fetching
    from spgcl.errors import InputError

    before = fetching.ATTEMPTS
    fetching.ATTEMPTS = 1
    try:
        fetching.fetch("minesweeper", mirror=address, pause_seconds=0)
    except InputError as error:
        assert str(error).isprintable() or not address.isprintable(), error
    finally:
        fetching.ATTEMPTS = before


# Of a hundred cases.
TARGETS: dict[Callable[[Workplace, st.DataObject], None], int] = {
    records_of_runs: 25,
    tensors_of_runs: 12,
    arrays_of_runs: 10,
    files_of_users: 28,
    options_of_commands: 8,
    settings_of_methods: 7,
    pickles_of_benchmarks: 7,
    addresses_of_mirrors: 3,
}


def trial(
    target: Callable[[Workplace, st.DataObject], None], place: Workplace, cases: int, number: int
) -> dict[str, Any]:
    """Try a target; how many cases were tried, with which exit codes, and the smallest failing one."""
    count = 0
    OUTCOMES.clear()

    @seed(number)
    @settings(
        max_examples=cases,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(st.data())
    def attempt(data: st.DataObject) -> None:
        nonlocal count
        count += 1
        target(place, data)

    failures = []
    try:
        attempt()
    except ExceptionGroup as several:
        failures = list(map(described, several.exceptions))
    except Exception as error:
        failures = [described(error)]
    return {"cases": count, "outcomes": dict(OUTCOMES), "failures": failures}


def described(error: Exception) -> str:
    """An error, where it was raised, and by which input."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    where = [f"{frame.filename}:{frame.lineno}" for frame in frames]
    drawn = " ".join(getattr(error, "__notes__", []))[:1500]
    return f"{type(error).__name__}: {str(error)[:1500]} at {where}; {drawn}"


def asked_for(names: str) -> list[Callable[[Workplace, st.DataObject], None]]:
    """The targets of these names; `others` stands for those of users' files and options."""
    runs = [records_of_runs, tensors_of_runs]
    if names == "others":
        return [target for target in TARGETS if target not in runs]
    return [target for target in TARGETS if not names or target.__name__ in names.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="Names of targets, or `others`.")
    asked = parser.parse_args()
    os.environ |= {"SPGCL_DEBUG": "1", "SPGCL_DATA": "/nonexistent", "no_proxy": "*"}
    with tempfile.TemporaryDirectory() as folder:
        place = Workplace(Path(folder))
        for target in asked_for(asked.only):
            started = time.perf_counter()
            record = trial(target, place, max(1, asked.cases * TARGETS[target] // 100), asked.seed)
            seconds = round(time.perf_counter() - started, 1)
            print(json.dumps({"target": target.__name__, **record, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
