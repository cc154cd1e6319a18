"""Files and folders that change whole or not at all, locks, and the cache folder."""

import ctypes
import errno
import glob
import os
import shlex
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from spgcl.errors import InputError

# Seconds to wait for processes that read a folder; they need milliseconds, unless they are stopped.
PATIENCE = 60.0
_FULL = (errno.ENOSPC, errno.EDQUOT)
_EXCHANGE, _HERE = 2, -100


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder; it replaces `path` when the block succeeds.

    If the process is killed, `path` stays as it was. The temporary name is this process's own, and locked;
    what killed processes left under such names is removed.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with _descriptor(temporary, os.O_RDWR | os.O_CREAT) as file:
            _try_lock(file)
            yield temporary
            os.fsync(file)
            temporary.replace(path)
        sync_folder(path.parent)
        for part in path.parent.glob(f".{glob.escape(path.name)}.*part"):
            with suppress(OSError), _descriptor(part) as abandoned:
                _lock(abandoned)
                part.unlink()
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def unwritable(path: Path, error: OSError, instead: str = "choose another folder") -> InputError:
    """The one line on a file that cannot be written; `instead` says where else it could be."""
    reason = os.strerror(error.errno).lower() if error.errno else str(error)
    room = "make room, or " if error.errno in _FULL else ""
    return InputError(f"{path} cannot be written: {reason}; {room}{instead}")


def is_part(path: Path) -> bool:
    """Whether this is a file that `replacing` did not complete, or a lock; a killed process leaves both."""
    return path.name.startswith(".") and path.name.endswith((".part", ".lock"))


def sync_file(path: Path) -> None:
    """Bring a file's content to disk."""
    with _descriptor(path, os.O_RDWR) as file:
        os.fsync(file)


def sync_folder(folder: Path) -> None:
    """Bring a folder's names to disk, where the system can."""
    if sys.platform != "win32":
        with _descriptor(folder) as folder_itself:
            os.fsync(folder_itself)


@contextmanager
def _descriptor(path: Path, flags: int = os.O_RDONLY) -> Iterator[int]:
    opened = os.open(path, flags, 0o666)
    try:
        yield opened
    finally:
        os.close(opened)


def exchange(one: Path, other: Path) -> bool:
    """Let two folders trade names in one operation; False if this system or file system knows none."""
    if not sys.platform.startswith("linux"):
        return False
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code), str(other))


@contextmanager
def locked(folder: Path, instead: str = "choose another folder") -> Iterator[None]:
    """Keep other processes from working on `folder`, which need not exist.

    The lock is on the file `.NAME.lock` beside it (in it, where nothing can be written beside it). It says
    who holds it, and the system releases it when that process dies.
    """
    beside = not folder.parent.exists() or os.access(folder.parent, os.W_OK)
    path = folder.with_name(f".{folder.name}.lock") if beside else folder / ".lock"
    missing = [parent for parent in path.parents if not parent.exists()]
    lock = _taken(path, folder, instead)
    try:
        with suppress(OSError):
            os.ftruncate(lock, 0)
            os.write(lock, _who().encode("utf-8", errors="replace"))
        yield
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        os.close(lock)
        for parent in missing:
            with suppress(OSError):
                parent.rmdir()


def _taken(path: Path, folder: Path, instead: str) -> int:
    """A descriptor of the lock file, locked; refused if another process has it."""
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:
            # The process that made the parent has just removed it.
            continue
        except OSError as error:
            raise unwritable(path, error, instead) from None
        if not _try_lock(lock):
            holder = os.read(lock, 200).decode("utf-8", errors="replace").strip() or "another process"
            os.close(lock)
            raise InputError(f"{folder} is in use by {holder}; wait until it ends, or {instead}")
        # The earlier holder may have removed the file after it was opened here.
        with suppress(OSError):
            if os.path.samestat(os.fstat(lock), path.stat()):
                return lock
        os.close(lock)


def _who() -> str:
    command = " ".join(["spgcl", *map(shlex.quote, sys.argv[1:3])])
    return f"process {os.getpid()} on {socket.gethostname()} ({command}, since {time.strftime('%H:%M')})"


def _try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file unless another process has; true also where the file system knows no locks."""
    try:
        _lock(descriptor, shared=shared)
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK)
    return True


def _lock(descriptor: int, *, shared: bool = False) -> None:
    if sys.platform == "win32":
        import msvcrt

        # Far behind the text, which others may read.
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)
    else:
        import fcntl

        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


@contextmanager
def steady(folder: Path, *, change: bool = False) -> Iterator[None]:
    """While the block runs, nobody else replaces the folder or, if the block is to `change` it, reads it.

    A short lock on the folder itself, and a shared one on the folder around it, which may be replaced as
    well. The system releases both when the process dies. If the folder was replaced in spite of it, as no
    process waits for ever, the block fails when it ends.
    """
    if sys.platform == "win32" or not folder.is_dir():
        yield
        return
    with ExitStack() as stack:
        _lock_folder(stack, folder.parent, shared=True)
        before = _lock_folder(stack, folder, shared=not change)
        yield
        if not change and not os.path.samestat(before, folder.stat()):
            raise InputError(f"{folder} was replaced while it was read; run the command again")


def _lock_folder(stack: ExitStack, folder: Path, *, shared: bool) -> os.stat_result:
    """Lock a folder until the stack is left; returns the folder's identity."""
    deadline = time.monotonic() + PATIENCE
    while True:
        with ExitStack() as attempt:
            try:
                descriptor = attempt.enter_context(_descriptor(folder))
            except PermissionError:
                # A folder that can be entered and not listed.
                return folder.stat()
            found = os.fstat(descriptor)
            done = _try_lock(descriptor, shared=shared) and os.path.samestat(found, folder.stat())
            if done or time.monotonic() > deadline:
                stack.push(attempt.pop_all())
                return found
        time.sleep(0.005)


def expanded(path: str, where: str) -> Path:
    """A path that may begin with `~`, as given by an option or a variable."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InputError(f"{where} is {path!r}, but there is no such home folder; give a full path") from None


def user_cache() -> Path:
    """The folder `spgcl` in the user's cache folder."""
    if cache := os.environ.get("XDG_CACHE_HOME"):
        return expanded(cache, "XDG_CACHE_HOME") / "spgcl"
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local) / "spgcl" / "cache"
    caches = "Library/Caches" if sys.platform == "darwin" else ".cache"
    try:
        return Path.home() / caches / "spgcl"
    except RuntimeError:
        raise InputError("this user has no home folder; set XDG_CACHE_HOME (and SPGCL_DATA)") from None
