"""`spgcl inspect`: describe a graph."""

from spgcl.cli.options import GraphArgument, JsonOption, LabelsOption, takes_options
from spgcl.cli.output import note, print_json, print_table, print_verdict
from spgcl.runs.options import GraphOptions


@takes_options
def inspect(
    graph: GraphArgument, *, options: GraphOptions, labels: LabelsOption = None, json: JsonOption = False
) -> None:
    """Describe a graph: size, degrees, where its signal is, and with labels its homophily."""
    from spgcl.report.words import graph_rows
    from spgcl.runs.inspect import inspect_graph

    record = inspect_graph(graph, options, labels)
    for remark in record["notes"]:
        note(remark)
    if json:
        print_json(record)
    else:
        print_table(str(record["name"]), ["property", "value"], graph_rows(record))
        print_verdict(record["without_labels"])
