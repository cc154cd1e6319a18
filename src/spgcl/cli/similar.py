"""`spgcl similar`: the nodes nearest to a node by embedding."""

from pathlib import Path
from typing import Annotated

import typer

from spgcl.cli.options import JsonOption
from spgcl.cli.output import print_json, print_table
from spgcl.errors import InputError


def similar(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    node: Annotated[str, typer.Argument(help="A node's id.")],
    count: Annotated[int, typer.Option("-k", min=1, help="How many neighbours.")] = 10,
    json: JsonOption = False,
) -> None:
    """Nearest nodes by cosine similarity of their embeddings, exact."""
    from spgcl.evaluation import most_similar
    from spgcl.runs.record import read_results

    _, embeddings, node_ids = read_results(run)
    places = [place for place, known in enumerate(node_ids.tolist()) if str(known) == node]
    if not places:
        raise InputError(f"no node {node!r} in {run}; its ids look like {node_ids.tolist()[0]!r}")
    rows, similarities = most_similar(embeddings, places[0], count)
    found = [
        {"node": known, "similarity": value}
        for known, value in zip(node_ids[rows].tolist(), similarities.tolist(), strict=True)
    ]
    if json:
        print_json(found)
        return
    print_table(
        f"nearest to {node} in {run}",
        ["node", "similarity"],
        [[str(r["node"]), r["similarity"]] for r in found],
    )
