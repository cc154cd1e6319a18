"""Where results are, and the command that is running; lines are written by `spgcl.experiments.results`."""

import sys
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "results"


def command_line(script: str, results: Path) -> str:
    """The command that is running, without its results file, which does not change a result."""
    words = [word for word in sys.argv[1:] if word not in ("--results", str(results))]
    return " ".join(["python", f"benchmarks/{script}", *words])
