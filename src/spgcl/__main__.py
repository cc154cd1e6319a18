"""The program `spgcl`, also as `python -m spgcl`."""

import os
import signal
from types import FrameType


def main() -> None:
    """Entry point of the `spgcl` command: Ctrl-C ends it in one line, also while modules are imported."""
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


def _leave(signum: int = 0, frame: FrameType | None = None) -> None:
    del signum, frame
    os.write(2, b"spgcl: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
