"""Atomic writes, and the cache folder."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder; it replaces `path` when the block succeeds.

    If the process is killed, `path` stays as it was, and the next write reuses the temporary name.
    """
    temporary = path.with_name(f".{path.name}.part")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def user_cache() -> Path:
    """The folder `spgcl` in the user's cache folder."""
    if cache := os.environ.get("XDG_CACHE_HOME"):
        return Path(cache).expanduser() / "spgcl"
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local) / "spgcl" / "cache"
    caches = "Library/Caches" if sys.platform == "darwin" else ".cache"
    return Path.home() / caches / "spgcl"
