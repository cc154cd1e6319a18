"""The documents as a site: every page is in it, and nothing in it is missing."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_site_builds_without_warnings(tmp_path):
    for name in ("material", "mkdocstrings_handlers"):
        pytest.importorskip(name, reason="no MkDocs: pip install '.[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path]
    done = subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {path.relative_to(ROOT / "docs").with_suffix("") for path in (ROOT / "docs").rglob("*.md")}
    for page in pages - {Path("index")}:
        assert (tmp_path / page / "index.html").exists(), page
    content = (tmp_path / "api" / "index.html").read_text(encoding="utf-8")
    assert all(name in content for name in ("FittedRun", "Embedder", "similar", "hold_out_edges"))


def test_every_page_is_in_the_menu():
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    missing = [
        page.relative_to(ROOT / "docs").as_posix()
        for page in (ROOT / "docs").rglob("*.md")
        if f": {page.relative_to(ROOT / 'docs').as_posix()}" not in menu
    ]
    assert missing == []
