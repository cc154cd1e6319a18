"""Real graphs that floors of methods are measured on."""

import os
from pathlib import Path

import pytest

from spgcl.datasets import Dataset, load


def real(name: str) -> Dataset:
    folder = os.environ.get("SPGCL_DATA")
    if not folder or not (Path(folder) / name).is_dir():
        pytest.skip(f"SPGCL_DATA does not name a folder with the files of {name}")
    return load(name)


@pytest.fixture(scope="session")
def chameleon() -> Dataset:
    return real("chameleon")


@pytest.fixture(scope="session")
def cora() -> Dataset:
    return real("cora")
