import pytest
from timing.graphs import settings_of, synthetic

from spgcl.datasets import Dataset


@pytest.fixture(autouse=True)
def one_thread(use_threads):
    use_threads(1)


@pytest.fixture
def tiny() -> Dataset:
    return synthetic(60, 4.0, 5, "tiny")


@pytest.fixture
def tiny_settings():
    def settings(**given):
        small = {"hidden": 6, "seeds": 10, "pool_size": 40, "positives": 3, "negatives": 7, "steps": 3}
        return settings_of("spgcl", "tiny", {**small, **given})

    return settings
