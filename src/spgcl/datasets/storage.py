"""The folder of benchmark files, and whether their bytes are the published ones."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from spgcl.datasets.entries import Entry, File, Form
from spgcl.errors import InputError
from spgcl.files import expanded, user_cache

State = Literal["ok", "absent", "wrong bytes"]


def data_folder() -> Path:
    """The folder of the benchmark files: SPGCL_DATA, else `spgcl` in the user's cache folder."""
    if chosen := os.environ.get("SPGCL_DATA"):
        return expanded(chosen, "SPGCL_DATA")
    return user_cache()


def matches(path: Path, form: Form) -> bool:
    """Whether the file at `path` has the bytes of `form`."""
    size = path.stat().st_size
    if form.size is not None and size != form.size:
        return False
    # Git's id is the SHA-1 of this header and the content: weak, but for some files nothing else is known.
    digest = (
        hashlib.sha256() if form.sha256 else hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
    )
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest() == (form.sha256 or form.git_blob)


def find(folder: Path, file: File) -> tuple[State, Path]:
    """State of a file in a data set's folder, and the path of the form that decided it."""
    state: State = "absent"
    found = folder / file.published.path
    for form in file.forms:
        path = folder / form.path
        if path.is_file():
            if matches(path, form):
                return "ok", path
            state, found = "wrong bytes", path
    return state, found


def checked_paths(entry: Entry, files: Mapping[str, File]) -> dict[str, Path]:
    """Paths by role, each checked against its checksum; an error before anything is opened otherwise."""
    folder = data_folder() / entry.name
    paths = {}
    for role, file in files.items():
        state, path = find(folder, file)
        if state == "absent":
            raise InputError(
                f"{entry.name} is not on disk: no {path.name} in {path.parent}; "
                f"run `spgcl datasets fetch {entry.name}` (or set SPGCL_DATA to the folder that has it)"
            )
        if state == "wrong bytes":
            raise InputError(
                f"{path} does not have the published checksum and was not opened; "
                f"run `spgcl datasets fetch {entry.name}` to replace it"
            )
        paths[role] = path
    return paths


def is_on_disk(entry: Entry, files: Mapping[str, File]) -> bool:
    """Whether all of these files of an entry exist; checksums are not compared."""
    folder = data_folder() / entry.name
    return all(any((folder / form.path).is_file() for form in file.forms) for file in files.values())
