"""`spgcl similar`: the nodes nearest to a node by embedding."""

from pathlib import Path
from typing import Annotated

import typer

from spgcl.cli.options import JsonOption
from spgcl.cli.output import print_json, print_table


def similar(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    node: Annotated[str, typer.Argument(help="A node's id.")],
    count: Annotated[int, typer.Option("-k", min=1, help="How many neighbours.")] = 10,
    json: JsonOption = False,
) -> None:
    """Nearest nodes by cosine similarity of their embeddings, exact."""
    from spgcl.runs.embed import similar_nodes

    found = similar_nodes(run, node, count)
    if json:
        print_json(found)
        return
    print_table(
        f"nearest to {node} in {run}",
        ["node", "similarity"],
        [[str(r["node"]), r["similarity"]] for r in found],
    )
