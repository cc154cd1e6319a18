"""What is known of a graph without labels: where its signal is, and how reliable the vectors are."""

from collections.abc import Mapping
from typing import Any

from spgcl.report.charts import Item, section, strip, strips, table, text
from spgcl.report.words import RELIABILITY_COLUMNS, reliability_rows

_WORDS = (
    "Each bar compares what two halves of the graph show, with half of the edges and half of the feature "
    "columns each: 1 is the same picture in both, 0 is chance."
)


def without_labels(found: Mapping[str, Any]) -> Item:
    """The section about reliability, from the findings of a run or of `split_half`."""
    items: list[Any] = []
    if found["channels"]:
        rows = [
            strip(name, [], channel["reliability"], channel["deviation"])
            for name, channel in found["channels"].items()
        ]
        items.append(strips("Reliability by channel", rows, "reliability", (0, 0.1)))
        items.append(text(_WORDS))
        items.append(table(RELIABILITY_COLUMNS, reliability_rows(found), "Numbers", folded=True))
    return section("signal", "Where the signal is", items, " ".join(found["verdict"]))
