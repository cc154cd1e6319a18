"""The border of the file system: every failure becomes one line that names the file."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from spgcl.errors import InputError


@contextmanager
def naming(origin: str | PathLike[str]) -> Iterator[None]:
    """Put the name of a file in front of errors that do not mention it."""
    try:
        yield
    except InputError as error:
        if str(origin) in str(error):
            raise
        raise type(error)(f"{origin}: {error}") from None


@contextmanager
def opening(path: Path, kind: str) -> Iterator[None]:
    """Turn every failure to read `path` as a `kind` into an `InputError` of one line that names it."""
    if not path.exists():
        raise InputError(f"{path}: no such file; check the path")
    require_regular(path)
    try:
        with naming(path):
            yield
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: {_plainly(error)}") from None
    except MemoryError:
        raise InputError(f"{path}: its {kind} claims more memory than there is; it may be damaged") from None
    # Decoders raise almost anything on damaged bytes.
    except Exception as error:
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise InputError(
            f"{path}: not a readable {kind}; is it truncated, or of another format? ({reason})"
        ) from None


def require_regular(path: Path) -> None:
    """Refuse a folder, and what may never end or never begin: pipes, devices, sockets."""
    if path.is_dir():
        raise InputError(f"{path}: is a directory; name a file in it")
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: is a pipe, a device or a socket; copy its content to a file")


def read_text(path: Path, errors: str = "strict") -> str:
    """The text of one of our own files, which may have become something else since it was written."""
    require_regular(path)
    return path.read_text(encoding="utf-8", errors=errors)


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked if it is gzipped, whatever its name."""
    with opening(path, "gzip file"):
        content = path.read_bytes()
        return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def suffix_of(path: Path) -> str:
    """The suffix that names the format: `.csv` for `edges.csv` and for `edges.csv.gz`."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _plainly(error: OSError) -> str:
    if isinstance(error, gzip.BadGzipFile) or not error.strerror:
        return f"damaged or truncated ({' '.join(str(error).split())})"
    return f"cannot be read: {error.strerror.lower()}"
