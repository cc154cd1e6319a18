"""Downloads that survive cut connections; a file gets its final name only after its checksum was right."""

import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from spgcl.datasets.connection import BrokenOffError, NotThereError, opened, require_address
from spgcl.datasets.entries import File, Form, entry
from spgcl.datasets.storage import data_folder, find, matches
from spgcl.errors import InputError
from spgcl.files import expanded, locked, sync_file, sync_folder, unwritable

Progress = Callable[[str, int, int | None], None]

ATTEMPTS = 4
BLOCK = 1 << 16
# Of files whose size is not known beforehand.
MOST_BYTES = 1 << 32
ELSEWHERE = "set SPGCL_DATA to another folder"


def fetch(
    name: str, *, mirror: str | None = None, progress: Progress | None = None, pause_seconds: float = 1.0
) -> list[str]:
    """Download the files of a data set into the data folder and return the paths that were written.

    Files with the right checksum are left alone.

    Args:
        name: A data set that comes from files.
        mirror: Address or folder laid out like the data folder, used instead of the publishers.
        progress: Called with the file's name, the bytes so far and the total if it is known.
        pause_seconds: Wait before the second attempt; it doubles with each further one.
    """
    found = entry(name)
    folder = data_folder() / name
    progress = progress or (lambda *_: None)
    base = None if mirror is None else f"{_mirror_address(mirror)}/{name}"
    if all(find(folder, file)[0] == "ok" for file in found.all_files):
        return []
    with locked(folder, ELSEWHERE):
        return [
            str(_fetch_file(file, folder, base, progress, pause_seconds))
            for file in found.all_files
            if find(folder, file)[0] != "ok"
        ]


def _mirror_address(mirror: str) -> str:
    if mirror.startswith(("http://", "https://", "file://")):
        require_address(mirror, "--mirror ")
        return mirror.rstrip("/")
    folder = expanded(mirror, "--mirror")
    if not folder.is_dir():
        raise InputError(f"--mirror {mirror}: neither an http(s) address nor a folder")
    return folder.resolve().as_uri()


def _fetch_file(file: File, folder: Path, base: str | None, progress: Progress, pause: float) -> Path:
    # A mirror may have either form of a file; a publisher has one.
    urls = {file.published.path: file.url}
    if base is not None:
        urls = {form.path: f"{base}/{quote(form.path)}" for form in file.forms}
    refusals = []
    for path, url in urls.items():
        forms = [form for form in file.forms if form.path == path]
        try:
            return _download(url, folder / path, forms, progress, pause)
        except NotThereError as error:
            refusals.append(f"{url}: {error}")
    raise InputError(f"{' and '.join(refusals)}; get the file from elsewhere with --mirror URL|PATH")


def _download(url: str, target: Path, forms: list[Form], progress: Progress, pause: float) -> Path:
    part = target.with_name(target.name + ".part")
    size = max(form.size or 0 for form in forms)
    # The second round is for a part file of other content, which no server can complete.
    for _ in range(2 if part.exists() else 1):
        _transfer_with_retries(url, part, size, progress, pause)
        if any(matches(part, form) for form in forms):
            sync_file(part)
            part.replace(target)
            sync_folder(target.parent)
            return target
        part.unlink()
    raise InputError(f"{url} sent other bytes than the published ones; discarded: try --mirror URL|PATH")


def _transfer_with_retries(url: str, part: Path, size: int, progress: Progress, pause: float) -> None:
    for attempt in range(ATTEMPTS):
        try:
            _transfer(url, part, size, progress)
            return
        except BrokenOffError as error:
            reason = str(error)
        if attempt + 1 < ATTEMPTS:
            time.sleep(pause * 2**attempt)
    kept = part.stat().st_size if part.exists() else 0
    raise InputError(
        f"{url}: {reason} ({ATTEMPTS} attempts, {kept:,} bytes kept); run again to resume, or try --mirror"
    )


def _transfer(url: str, part: Path, size: int, progress: Progress) -> None:
    """One attempt: append the missing bytes to the part file, or start over if the server cannot resume."""
    offset = part.stat().st_size if part.exists() else 0
    with opened(url, offset) as response:
        done = offset if response.resumed else 0
        total = None if response.length is None else done + response.length
        try:
            part.parent.mkdir(parents=True, exist_ok=True)
            with part.open("ab" if response.resumed else "wb") as stream:
                while block := response.read(BLOCK):
                    stream.write(block)
                    done += len(block)
                    progress(part.name.removesuffix(".part"), done, total)
                    # A longer file is wrong, and might never end.
                    if done > (size or MOST_BYTES):
                        return
        except OSError as error:
            raise unwritable(part, error, ELSEWHERE) from None
    if total is not None and done < total:
        raise BrokenOffError(f"the transfer broke off at {done:,} of {total:,} bytes")
