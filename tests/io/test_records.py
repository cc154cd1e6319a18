"""Records against annotations: what is missing, null or of another type is named."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest

from spgcl.errors import InputError
from spgcl.io.records import read_record, require


class Part(TypedDict):
    count: int
    weight: NotRequired[float]


@dataclass
class Record:
    name: str
    part: Annotated[dict[str, Any], Part]
    kind: Literal["a", "b"] = "a"
    maybe: Annotated[dict[str, Any], Part, None] = field(default_factory=dict)
    rows: list[dict[str, float | None]] = field(default_factory=list)
    path: Path | None = None
    flag: bool = False


GOOD = {
    "name": "x",
    "part": {"count": 1, "more": [1]},
    "kind": "b",
    "rows": [{"a": 1, "b": None}],
    "path": "p",
}


def test_a_record_as_annotated_passes():
    require(GOOD, Record)
    require({**GOOD, "maybe": {"count": 2, "weight": 1}}, Record)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"name": None}, "name is None, not str"),
        ({"name": 1}, "name is 1"),
        ({"part": {}}, "part.count is missing"),
        ({"part": {"count": True}}, "part.count is True, not int"),
        ({"part": {"count": 1.0}}, "part.count"),
        ({"part": {"count": 10**400}}, "part.count"),
        ({"part": {"count": 1, "weight": None}}, "part.weight"),
        ({"part": []}, "part is []"),
        ({"maybe": {"weight": 1.0}}, "maybe.count is missing"),
        ({"kind": "c"}, "kind is 'c', not Literal['a', 'b']"),
        ({"kind": ["a"]}, "kind"),
        ({"rows": {}}, "rows"),
        ({"rows": [{"a": "1"}]}, "rows.0.a is '1', not float or NoneType"),
        ({"path": 1}, "path"),
        ({"flag": 1}, "flag"),
        ({"other": 1}, "other is not a known part"),
    ],
)
def test_the_wrong_part_is_named(change, part):
    with pytest.raises(InputError) as caught:
        require({**GOOD, **change}, Record)
    assert part in str(caught.value)


@pytest.mark.parametrize("name", ["name", "part"])
def test_what_is_missing_is_named(name):
    with pytest.raises(InputError, match=f"{name} is missing"):
        require({key: value for key, value in GOOD.items() if key != name}, Record)


@pytest.mark.parametrize("content", [b"[" * 100_000, b"{", b"\xff", b"9" * 5000, b""])
def test_a_file_that_is_no_record_is_refused_with_the_remedy(tmp_path, content):
    path = tmp_path / "record.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"record\.json .*; do so") as caught:
        read_record(path, Part, "do so")
    assert "\n" not in str(caught.value)
