"""`spgcl similar`: the nodes most similar to a node by embedding."""

from typing import Annotated

import typer

from spgcl.cli.options import JsonOption, RunArgument
from spgcl.cli.output import print_json, print_table


def similar(
    run: RunArgument,
    node: Annotated[str, typer.Argument(help="A node's id.")],
    count: Annotated[int, typer.Option("-k", min=1, help="How many nodes.")] = 10,
    json: JsonOption = False,
) -> None:
    """Find the nodes most similar to a node by cosine similarity of embeddings, exactly."""
    from spgcl.runs.embed import similar_nodes

    found = similar_nodes(run, node, count)
    if json:
        print_json(found)
        return
    rows = [[str(row["node"]), row["similarity"]] for row in found]
    print_table(f"most similar to {node} in {run}", ["node", "similarity"], rows)
