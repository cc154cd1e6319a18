"""Tables of graphs on disk, from results/store.jsonl."""

from collections.abc import Sequence
from typing import Any

from markdown import NO_RESULTS, table

Record = dict[str, Any]
# The graph of the estimate, and an assumed price of a core for an hour.
NODES, EDGES, PRICE = 10**9, 10**10, 0.05
GIB = 2**30


def latest(records: Sequence[Record], kind: str, *keys: str) -> list[Record]:
    """Of the records of a kind the last with each value of the keys."""
    found = {tuple(one[key] for key in keys): one for one in records if one["kind"] == kind}
    return [found[key] for key in sorted(found)]


def growth_table(records: Sequence[Record]) -> str:
    """Seconds and memory of ingesting, fitting and embedding, by size and --memory."""
    rows = []
    for one in latest(records, "growth", "nodes", "memory"):
        phases = one["fit"]["phases"]
        rows.append(
            [
                f"{one['nodes']:,}",
                f"{one['edges']:,}",
                one["memory"],
                f"{one['ingest']['seconds']:.0f}",
                *[f"{phases[phase]:.1f}" for phase in ("prepare", "train", "embed")],
                f"{one['fit']['seconds']:.0f}",
                f"{max(one[part]['mib']['resident'] for part in ('ingest', 'fit')) / 1024:.1f}",
                f"{max(one[part]['mib']['anonymous'] for part in ('ingest', 'fit')) / 1024:.1f}",
                f"{one['step_ms']['cpu']:.1f}",
            ]
        )
    columns = ["nodes", "edges", "`--memory`", "ingest s", "prepare s", "train s", "embed s", "whole fit s"]
    columns += ["resident GiB", "without files GiB", "step ms"]
    return table(columns, rows, text_columns=0) if rows else NO_RESULTS


def agreement_table(records: Sequence[Record]) -> str:
    """Test scores of the same training in memory and on disk."""
    rows = [
        [one["dataset"], f"{one['score']['memory']:.2f}", f"{one['score']['disk']:.2f}"]
        for one in latest(records, "agreement", "dataset")
    ]
    return table(["graph", "in memory", "on disk"], rows) if rows else NO_RESULTS


def ranks_table(records: Sequence[Record]) -> str:
    """Pools per second of one process and of two."""
    found = latest(records, "ranks", "nodes", "engine")
    alone = {one["nodes"]: one["pools_per_second"] for one in found if one["engine"] == "one process"}
    rows = [
        [
            one["engine"] + ("" if one["engine"] == "one process" else ", two processes"),
            f"{one['nodes']:,}",
            f"{one['pools_per_second']:.1f}",
            f"{one['pools_per_second'] / alone[one['nodes']]:.2f}",
        ]
        for one in found
        if one["nodes"] in alone
    ]
    return table(["engine", "nodes", "pools per second", "ratio"], rows) if rows else NO_RESULTS


def accelerator_table(records: Sequence[Record]) -> str:
    """Seconds per phase of the largest graph on one accelerator."""
    rows = [
        [
            one["processor"],
            f"{one['nodes']:,}",
            f"{one['entries']:,}",
            *[f"{one['seconds'][phase]:.2f}" for phase in ("hop 1", "hop 2", "train", "embed")],
            f"{one['total']:.1f}",
            f"{one['peak_gb']:.0f}",
            f"{one['hop_gb_per_second']:,.0f}",
        ]
        for one in latest(records, "accelerator", "processor", "nodes")
    ]
    columns = ["processor", "nodes", "entries", "hop 1 s", "hop 2 s", "500 steps s", "embed s", "sum s"]
    columns += ["peak GB", "hop GB/s"]
    return table(columns, rows) if rows else NO_RESULTS


def estimate_table(records: Sequence[Record]) -> str:
    """A graph of a billion nodes, from the bytes it has and the rates of the largest one measured."""
    measured = [one for one in latest(records, "growth", "nodes", "memory") if one["nodes"] >= 10**6]
    if not measured:
        return NO_RESULTS
    last = measured[-1]
    factor = (NODES + 2 * EDGES) / (last["nodes"] + 2 * last["edges"])
    width, features, phases = last["settings"]["hidden"], 32, last["fit"]["phases"]
    hop_bytes = 2 * EDGES * 4 + NODES * 4 * features * 2
    hours = {
        "ingest": last["ingest"]["seconds"] * factor / 3600,
        "prepare (one hop, checksums)": phases["prepare"] * factor / 3600,
        "train (a step does not grow)": phases["train"] / 3600,
        "embed": phases["embed"] * factor / 3600,
    }
    rows = [
        ["edges on disk", f"{(2 * EDGES * 4 + NODES * 12) / GIB:,.0f} GiB"],
        ["features on disk, and each hop", f"{NODES * features * 4 / GIB:,.0f} GiB"],
        ["a layer on disk while embedding, and the result", f"{NODES * width * 4 / GIB:,.0f} GiB each"],
        ["read and written per hop", f"{hop_bytes / GIB:,.0f} GiB"],
        [
            "over the network per hop, 32 machines and one file system",
            f"up to {(2 * EDGES * 4 + 33 * NODES * 4 * features) / GIB:,.0f} GiB",
        ],
        ["memory per process: arrays over nodes", f"{NODES * 8 * 3 / GIB:,.0f} GiB"],
        *[[f"hours of one core: {name}", f"{value:.2f}"] for name, value in hours.items()],
        [f"cost at {PRICE:.2f} USD per core and hour", f"{PRICE * sum(hours.values()):.1f} USD"],
    ]
    return table([f"{NODES:,} nodes, {EDGES:,} edges", "estimate"], rows)


def rivals_table(records: Sequence[Record]) -> str:
    """What others need for the same graphs, and where they stop."""
    names = {
        "pyg": "PyTorch Geometric, whole graph",
        "networkx": "NetworkX and walks in Python",
        "pecanpy": "PecanPy, walks and word2vec",
    }
    ends = {"done": "", "time": "stopped after its time", "memory": "out of memory"}
    rows = [
        [
            names[one["rival"]],
            f"{one['nodes']:,}",
            *[
                f"{one['phases'][name]:.1f}" if name in one["phases"] else ""
                for name in ("read", "epoch", "walks")
            ],
            f"{one['resident_mib'] / 1024:.1f}",
            ends[one["outcome"]],
        ]
        for one in latest(records, "rivals", "rival", "nodes")
    ]
    columns = ["", "nodes", "read s", "s per epoch", "walks s", "resident GiB", ""]
    return table(columns, rows) if rows else NO_RESULTS


SECTIONS = {
    "rivals": rivals_table,
    "growth": growth_table,
    "agreement": agreement_table,
    "ranks": ranks_table,
    "accelerator": accelerator_table,
    "estimate": estimate_table,
}
