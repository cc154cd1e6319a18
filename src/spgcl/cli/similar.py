"""`spgcl similar`: the nodes most similar to some nodes by embedding."""

from pathlib import Path
from typing import Annotated

import typer

from spgcl.cli.options import JsonOption
from spgcl.cli.output import print_json, print_table


def similar(
    run: Annotated[Path, typer.Argument(help="A run folder, or a file of embeddings.")],
    nodes: Annotated[list[str], typer.Argument(metavar="NODE", help="Ids of nodes.")],
    count: Annotated[int, typer.Option("-k", min=1, help="How many similar nodes of each.")] = 10,
    json: JsonOption = False,
) -> None:
    """Find the nodes most similar to each of some nodes by cosine similarity of embeddings, exactly."""
    from spgcl.runs.embed import similar_nodes

    found = similar_nodes(run, nodes, count)
    if json:
        print_json(found)
        return
    names = ["of", "node"] if len(nodes) > 1 else ["node"]
    rows = [[*(str(row[name]) for name in names), row["similarity"]] for row in found]
    print_table(f"most similar to {', '.join(nodes[:3])} in {run}", [*names, "similarity"], rows)
