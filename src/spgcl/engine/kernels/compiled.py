"""CUDA kernels, compiled from the sources in this folder.

Compiling takes seconds, so binaries are kept in the user's cache folder.
"""

import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spgcl.errors import InputError
from spgcl.files import user_cache

_DIGEST_BYTES = 32


@cache
def load_kernels(file: str, names: tuple[str, ...]) -> dict[str, Any]:
    """The kernels of a source in this folder, by name, compiled together.

    PyTorch's own wrapper would compile the file once per kernel. Empty if this PyTorch has no such compiler,
    which is not part of its public interface.
    """
    source = (Path(__file__).parent / file).read_text(encoding="utf-8")
    try:
        from torch.cuda._utils import _cuda_load_module, _nvrtc_compile

        capability = "".join(map(str, torch.cuda.get_device_capability()))
        target = f"{torch.__version__} {torch.version.cuda} {capability}"
        binary = compiled_once(source, target, lambda: _nvrtc_compile(source, names[0])[0])
        loaded = _cuda_load_module(binary, list(names))
    except (ImportError, AttributeError, TypeError, ValueError, RuntimeError, OSError):
        return {}
    return dict(loaded) if isinstance(loaded, dict) else {name: getattr(loaded, name) for name in names}


def uses_tf32(numbers: Tensor) -> bool:
    """Whether products of a matrix are computed in TF32."""
    return (
        numbers.is_cuda
        and numbers.dtype == torch.float32
        and torch.get_float32_matmul_precision() != "highest"
        and torch.cuda.get_device_capability(numbers.device) >= (8, 0)
    )


def compiled_once(source: str, target: str, compile_source: Callable[[], bytes]) -> bytes:
    """The binary of a source for a target, from the cache or compiled now.

    A damaged file is compiled again. If the folder cannot be written, or others could write to it, nothing is
    cached.

    Args:
        source: Text of the source.
        target: All else that the binary depends on: device and versions.
        compile_source: Makes the binary.
    """
    name = hashlib.sha256(f"{target}\n{source}".encode()).hexdigest()
    try:
        path = user_cache() / "kernels" / f"{name}.bin"
    except InputError:
        # This user has no home folder.
        return compile_source()
    binary = _read(path)
    if binary is None:
        binary = compile_source()
        _write(path, binary)
    return binary


def _read(path: Path) -> bytes | None:
    """The binary, if nobody else can have written it and it is what was stored for this source and target."""
    try:
        _require_own(path.parent.lstat())
        with os.fdopen(_open_itself(path, os.O_RDONLY), "rb") as file:
            _require_own(os.fstat(file.fileno()))
            stored = file.read()
    except OSError:
        return None
    digest, binary = stored[:_DIGEST_BYTES], stored[_DIGEST_BYTES:]
    return binary if _digest(path, binary) == digest else None


def _write(path: Path, binary: bytes) -> None:
    # Several processes may compile at the same time; each writes its own temporary file.
    temporary = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _require_own(path.parent.lstat())
        temporary.unlink(missing_ok=True)
        with os.fdopen(_open_itself(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            file.write(_digest(path, binary) + binary)
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()


def _digest(path: Path, binary: bytes) -> bytes:
    """Of the binary and of its name, which stands for source and target: a renamed file does not pass."""
    return hashlib.sha256(path.name.encode() + binary).digest()


def _open_itself(path: Path, flags: int) -> int:
    """Open a file for its owner only, and not what a link leads to."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _require_own(found: os.stat_result) -> None:
    """An OSError unless a file or folder belongs to this user and only this user can write to it."""
    if not hasattr(os, "geteuid"):
        # On Windows a user's cache folder is the user's.
        return
    writable_by_others = stat.S_IMODE(found.st_mode) & (stat.S_IWGRP | stat.S_IWOTH)
    if found.st_uid != os.geteuid() or writable_by_others or stat.S_ISLNK(found.st_mode):
        raise PermissionError("not this user's own")
