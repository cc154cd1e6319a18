"""What was read in other repositories (audit.toml), as tables of a page."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from typing import Any

from spgcl.experiments.render import Table, markdown

_HOST = "https://github.com"


@dataclass(frozen=True)
class Place:
    """Lines of a file, the first and the last."""

    file: str
    lines: tuple[int, int]


@dataclass(frozen=True)
class Finding:
    """A rule that was read in code.

    Attributes:
        kind: Which kind of rule; empty if the scores can be compared.
        commit: The state of the repository that was read.
        places: Where in it.
        does: What the code does there.
        numbers: Which published numbers it concerns.
    """

    method: str
    repository: str
    commit: str
    places: tuple[Place, ...]
    does: str
    kind: str = ""
    numbers: str = ""

    @property
    def code(self) -> str:
        """Links to the lines."""
        root = f"{_HOST}/{self.repository}/blob/{self.commit}"
        links = [
            f"[{place.file}:{first}-{last}]({root}/{place.file}#L{first}-L{last})"
            for place in self.places
            for first, last in [place.lines]
        ]
        return f"{self.repository} at {self.commit[:7]}: {', '.join(links)}"


def material() -> dict[str, Any]:
    """The contents of audit.toml."""
    return tomllib.loads(files(__package__).joinpath("audit.toml").read_text(encoding="utf-8"))


def findings(records: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Findings from their tables in audit.toml."""
    return [
        Finding(
            **{
                **record,
                "places": tuple(Place(place["file"], tuple(place["lines"])) for place in record["places"]),
            }
        )
        for record in records
    ]


def findings_text() -> str:
    """A section per kind of rule, in the order of audit.toml."""
    contents = material()
    kinds = {kind["id"]: kind for kind in contents["kinds"]}
    sections = []
    for name, group in groupby(findings(contents["findings"]), key=lambda finding: finding.kind):
        rows = [[each.method, each.code, each.does, each.numbers] for each in group]
        columns = ["method", "code", "what it does", "numbers concerned"]
        sections.append(f"### {kinds[name]['title']}\n")
        sections.append(markdown(Table(kinds[name]["text"], columns, rows, text_columns=4)) + "\n")
    return "\n".join(sections).rstrip()


def comparable_text() -> str:
    """What was read without finding such a rule, and what was not read."""
    contents = material()
    rows = [[each.method, each.code, each.does] for each in findings(contents["clean"])]
    unchecked = [f"Not checked: {each['method']} ({each['why']})." for each in contents["unchecked"]]
    return markdown(Table("", ["method", "code", "what it does"], rows, unchecked, text_columns=3))
