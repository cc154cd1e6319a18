"""Links in the documents resolve, and the modules and names that they mention exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "results" / "README.md"]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
# `name`, `other_name` in `methods/module.py`
NAMES = re.compile(r"((?:`[\w.]+`(?:, | and )?)+)\s+in\s+`([a-z_]+/[\w/]+\.py)`")


def anchors(path: Path) -> set[str]:
    """Anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_names_exist(document):
    text = document.read_text(encoding="utf-8")
    for target, anchor in LINK.findall(text):
        path = document.parent / target if target else document
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), f"{target}#{anchor}"
    for names, module in NAMES.findall(text):
        source = (ROOT / "src" / "spgcl" / module).read_text(encoding="utf-8")
        for name in re.findall(r"`([\w.]+)`", names):
            assert re.search(rf"\b{name.split('.')[-1]}\b", source), f"{name} in {module}"
