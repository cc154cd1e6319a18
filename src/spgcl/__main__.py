"""The program `spgcl`, also as `python -m spgcl`."""

import os
import signal
import sys
from types import FrameType

# Of address space, which imports need; with less, libraries loop for ever or abort.
_LEAST_MIB = 1300


def main() -> None:
    """Entry point of the `spgcl` command: Ctrl-C ends it in one line, also while modules are imported."""
    _require_memory()
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        # It may be ignored, as for a process in the background.
        from spgcl.cli import main as command
    else:
        signal.signal(signal.SIGINT, _leave)
        from spgcl.cli import main as command

        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        command()
    except KeyboardInterrupt:
        _leave()


def _require_memory() -> None:
    if sys.platform == "win32":
        return
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < _LEAST_MIB << 20:
        line = f"spgcl: {limit >> 20} MiB of memory; allow this process at least {_LEAST_MIB} (ulimit -v)\n"
        os.write(2, line.encode())
        sys.exit(2)


def _leave(signum: int = 0, frame: FrameType | None = None) -> None:
    del signum, frame
    os.write(2, b"spgcl: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
