"""The maps of several runs side by side: the same nodes, selected in all at once."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from spgcl.report.charts import Item
from spgcl.report.points import all_columns, map_data, run_columns, view_data
from spgcl.report.projected import Projection, plane_of_run
from spgcl.report.scores import first_split

if TYPE_CHECKING:
    from spgcl.report.comparison import Entry

# More cannot be compared at a glance.
_MOST_MAPS = 6


def side_by_side(
    entries: Sequence["Entry"], projection: Projection, say: Callable[[str], None]
) -> tuple[Item | None, list[Item]]:
    """What map.js draws, and its section; none if no graph can be read."""
    known = [(entry, entry.material) for entry in entries if entry.material]
    if not known:
        return None, []
    first = known[0][1]
    same = [
        (entry, material)
        for entry, material in known
        if np.array_equal(material.graph.node_ids, first.graph.node_ids)
    ]
    views, columns = [], []
    for entry, material in same[:_MOST_MAPS]:
        say(f"computing the map of {entry.name}")
        view = view_data(material, plane_of_run(material, projection))
        views.append({**view, "name": entry.name, "colour": entry.colour})
        predicted = first_split(material) if material.splits is not None else None
        columns += run_columns(material, predicted, entry.name)
    words = "The same nodes in every map: what is selected, chosen or filtered in one is so in all."
    if len(views) < len(entries):
        words += (
            f" {len(views)} of {len(entries)} runs are shown: those of the same nodes, at most {_MOST_MAPS}."
        )
    section = {"id": "map", "title": "Maps", "text": words, "items": []}
    return map_data(first, all_columns(first, columns), views), [section]
