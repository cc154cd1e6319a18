"""The table of docs/reliability.md: how often each promise was tried, and how often it failed."""

from collections.abc import Sequence
from typing import Any

from markdown import NO_RESULTS, table

Record = dict[str, Any]
_PARTS = (
    ("crash_points.py", "tried", "crash points: {}"),
    ("interleavings.py", "pair", "interleavings of pairs of commands"),
    ("fuzzing.py", "target", "odd input: {}"),
)


def hardening_table(lines: Sequence[Record]) -> str:
    """Trials of every kind; of several lines of one kind, those of the last campaign."""
    latest = {(line["script"], line[key]): line for line in lines for _, key, _ in _PARTS if key in line}
    counted: dict[str, tuple[int, int]] = {}
    for script, key, title in _PARTS:
        for line in latest.values():
            if line["script"] == script:
                name = title.format(f"`{line[key]}`" if key == "tried" else line[key].replace("_", " "))
                trials, failures = counted.get(name, (0, 0))
                tried = line["cases"] if "cases" in line else line["trials"]
                counted[name] = trials + tried, failures + line["failures"]
    if not counted:
        return NO_RESULTS
    rows = [[name, f"{trials:,}", f"{failures:,}"] for name, (trials, failures) in counted.items()]
    totals = [sum(pair[index] for pair in counted.values()) for index in (0, 1)]
    rows.append(["all", *(f"{total:,}" for total in totals)])
    return table(["what", "trials", "failed"], rows, text_columns=1)
