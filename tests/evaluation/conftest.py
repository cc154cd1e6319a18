import pytest
from made_tasks import make_splits, make_task


@pytest.fixture
def task():
    return make_task()


@pytest.fixture
def uneven_splits():
    return make_splits(300, [(60, 50), (90, 40), (45, 80)])
