import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def benchmark_folder() -> Path:
    """The verified benchmark files; tests that need them are skipped where they are not."""
    chosen = os.environ.get("SPGCL_DATA")
    if not chosen or not (Path(chosen) / "MANIFEST.json").is_file():
        pytest.skip("SPGCL_DATA does not name a folder with the benchmark files")
    return Path(chosen)
