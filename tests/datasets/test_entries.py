import json
import re

import pytest

from spgcl.datasets.entries import entries, entry
from spgcl.datasets.readers import READERS
from spgcl.errors import InputError

PAPER = {
    "cora", "citeseer", "pubmed", "wikics", "amazon-computers", "amazon-photo", "coauthor-cs",
    "coauthor-physics", "chameleon", "squirrel", "actor", "twitch-de", "twitch-gamers", "genius",
}  # fmt: skip
OTHERS = {
    "chameleon-filtered", "squirrel-filtered", "roman-empire", "amazon-ratings", "minesweeper", "tolokers",
    "questions",
}  # fmt: skip


def test_the_table_holds_the_papers_graphs_and_the_others():
    assert set(entries()) == PAPER | OTHERS
    assert {name for name, known in entries().items() if known.paper} == PAPER


def test_roc_auc_where_it_is_the_metric():
    scored = {name for name, known in entries().items() if known.metric == "roc_auc"}
    assert scored == {"twitch-de", "genius", "minesweeper", "tolokers", "questions"}


def test_every_file_has_an_address_an_identity_and_a_reader():
    for known in entries().values():
        assert known.reader in READERS
        assert known.directed_reader is None or known.directed_reader in READERS
        for file in known.all_files:
            assert re.fullmatch(r"https://raw\.githubusercontent\.com/[\w./-]+", file.url)
            for form in file.forms:
                identity = form.sha256 or form.git_blob
                assert re.fullmatch(r"[0-9a-f]{64}" if form.sha256 else r"[0-9a-f]{40}", identity)


def test_every_kept_file_is_the_manifests(benchmark_folder):
    manifest = json.loads((benchmark_folder / "MANIFEST.json").read_text())["datasets"]
    for name in set(manifest) & set(entries()):
        rows = {row["path"]: row for row in manifest[name]["files"]}
        for file in entries()[name].all_files:
            form = file.forms[0]
            row = rows[f"{name}/{form.path}"]
            assert (form.size, form.sha256) == (row["bytes"], row["sha256"])
            assert file.published.sha256 == row.get("upstream_sha256", row["sha256"])
            repository = row["upstream_repository"].removeprefix("https://github.com/")
            assert file.url.endswith(f"{repository}/{row['upstream_commit']}/{row['upstream_path']}")


def test_every_absent_file_has_the_identity_that_was_published(benchmark_folder):
    listed = json.loads((benchmark_folder / "MANIFEST.json").read_text())["not_included"]["files"]
    rows = {row["upstream_path"]: row for group in listed.values() for row in group}
    absent = ["wikics", "genius", "twitch-gamers", "roman-empire", "amazon-ratings", "tolokers", "questions"]
    for file in (file for name in absent for file in entries()[name].all_files):
        row = next(row for path, row in rows.items() if file.url.endswith(f"/{path}"))
        sha256 = row.get("sha256") or row.get("expected_sha256")
        assert file.published.sha256 == sha256
        assert sha256 or file.published.git_blob == row["expected_git_blob_sha1"]


def test_an_unknown_name_offers_the_nearest():
    with pytest.raises(InputError, match=r"'chamelion'.*'chameleon'"):
        entry("chamelion")
