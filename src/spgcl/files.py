"""Files that appear whole or not at all, and the folder of those that can be made again."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path in the same folder that takes the place of `path` when the block ends well.

    A process killed in between leaves `path` as it was; the next write reuses the temporary name.
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
