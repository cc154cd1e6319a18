"""`spgcl inspect`: describe a graph."""

from typing import Any

from spgcl.cli.options import GraphArgument, JsonOption, LabelsOption, takes_options
from spgcl.cli.output import note, print_json, print_table, print_verdict
from spgcl.runs.options import GraphOptions


@takes_options
def inspect(
    graph: GraphArgument, *, options: GraphOptions, labels: LabelsOption = None, json: JsonOption = False
) -> None:
    """Describe a graph: size, degrees, where its signal is, and with labels its homophily."""
    from spgcl.runs.inspect import inspect_graph

    record = inspect_graph(graph, options, labels)
    for remark in record["notes"]:
        note(remark)
    if json:
        print_json(record)
    else:
        print_table(str(record["name"]), ["property", "value"], _rows(record))
        print_verdict(record["without_labels"])


def _rows(record: dict[str, Any]) -> list[list[str]]:
    """The record as a table for people."""
    degree = record["degree"]
    rows = [
        ["nodes", f"{record['nodes']:,}"],
        ["edges", f"{record['edges']:,} {'directed' if record['directed'] else 'undirected'}"],
        ["edge weights", "yes" if record["weighted"] else "no"],
        ["features", _features(record)],
        [
            "degree",
            f"{degree['min']:,} to {degree['max']:,}, mean {degree['mean']:.2f}, median {degree['median']:g}",
        ],
        ["isolated nodes", f"{record['isolated_nodes']:,}"],
        ["connected components", f"{record['connected_components']:,}"],
        ["memory", f"{record['memory_bytes'] / 2**20:.1f} MiB"],
    ]
    return rows + _label_rows(record) if "classes" in record else rows


def _features(record: dict[str, Any]) -> str:
    if not record["features"]:
        return "none"
    return f"{record['features']:,}, {100 * record['feature_density']:.3g}% nonzero"


def _label_rows(record: dict[str, Any]) -> list[list[str]]:
    counts = record["class_counts"]
    names = record.get("class_names") or [str(value) for value in range(len(counts))]
    shown = [f"{name}: {count:,}" for name, count in zip(names, counts, strict=True)]
    rows = [
        ["classes", f"{record['classes']:,} ({', '.join(shown[:10])}{', ...' if len(shown) > 10 else ''})"],
        ["edge homophily", f"{record['edge_homophily']:.3f}"],
        ["node homophily", f"{record['node_homophily']:.3f}"],
    ]
    if transformed := record.get("transformed"):
        nodes = f"{transformed['anchors']:,} {'sampled nodes' if transformed['sampled'] else 'nodes'}"
        what = f"top {transformed['positives']} by {transformed['hops']}-hop features, {nodes}"
        rows.append(["transformed homophily", f"{transformed['homophily']:.3f} ({what})"])
    if record["unlabelled_nodes"]:
        rows.insert(1, ["unlabelled nodes", f"{record['unlabelled_nodes']:,}"])
    return rows
