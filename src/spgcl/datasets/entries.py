"""The table of benchmark graphs (entries.toml) as records."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Literal
from urllib.parse import quote

from spgcl.datasets.dataset import Metric
from spgcl.errors import unknown


@dataclass(frozen=True)
class Form:
    """One byte-exact version of a file: its path in the data set's folder and its checksum.

    Attributes:
        git_blob: Git's id of the content, used if no SHA-256 is known.
    """

    path: str
    size: int | None = None
    sha256: str | None = None
    git_blob: str | None = None


@dataclass(frozen=True)
class File:
    """A publisher's file: as served at `url`, and possibly a compressed copy with the same content."""

    url: str
    published: Form
    kept: Form | None = None

    @property
    def forms(self) -> tuple[Form, ...]:
        """Every accepted form, the smaller one first."""
        return (self.published,) if self.kept is None else (self.kept, self.published)


@dataclass(frozen=True)
class Entry:
    """Facts about a benchmark that are known before any of its files is opened.

    Attributes:
        files: What `load` reads, by role.
        directed: Files with edge directions, if these are not `files`.
        split_seed: Seed of the random splits of a graph that is published without splits.
        paper: The figures of the paper's table 8.
        differs: Why a figure of the paper differs from the one measured from the files.
        paper_counts: What the paper's homophily is taken over, if not the undirected graph.
    """

    name: str
    reader: str
    metric: Metric
    splits: str
    nodes: int
    repository: str
    licence: str
    files: Mapping[str, File]
    directed: Mapping[str, File] = field(default_factory=dict)
    directed_reader: str | None = None
    split_seed: int | None = None
    paper: Mapping[str, float] = field(default_factory=dict)
    differs: Mapping[str, str] = field(default_factory=dict)
    paper_counts: Literal["incoming edges", "every node"] | None = None

    @property
    def all_files(self) -> tuple[File, ...]:
        """Every file of the entry."""
        return (*self.files.values(), *self.directed.values())


@cache
def entries() -> dict[str, Entry]:
    """The table, in the paper's order."""
    text = resources.files("spgcl.datasets").joinpath("entries.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    return {name: _entry(name, record, table["sources"]) for name, record in table["datasets"].items()}


def entry(name: str) -> Entry:
    """The entry of a data set that comes from files, or an error with similar names."""
    if name not in entries():
        raise unknown("data set", name, entries())
    return entries()[name]


def _entry(name: str, record: dict[str, Any], sources: Mapping[str, Mapping[str, str]]) -> Entry:
    first = sources[next(iter(record["files"].values()))["source"]]
    read = {
        part: {role: _file(row, sources) for role, row in record.get(part, {}).items()}
        for part in ("files", "directed")
    }
    return Entry(name=name, repository=first["repository"], licence=first["licence"], **(record | read))


def _file(row: dict[str, Any], sources: Mapping[str, Mapping[str, str]]) -> File:
    source = sources[row["source"]]
    address = f"{source['repository']}/{source['commit']}/{quote(row['published_path'])}"
    identity = {key: row[key] for key in ("path", "size", "sha256", "git_blob") if key in row}
    return File(
        url=f"https://raw.githubusercontent.com/{address}",
        published=Form(**identity),
        kept=Form(**({"path": row["path"]} | row["kept"])) if "kept" in row else None,
    )
