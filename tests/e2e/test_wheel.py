"""What is published: built from the checkout, installed alone, and used without the checkout."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The first example of README.md, cut short.
FIRST = """
import spgcl

assert spgcl.__file__.startswith({site!r}), spgcl.__file__
dataset = spgcl.load("csbm-heterophilic")
model = spgcl.Embedder(method="spgcl", preset=None, hidden=8, steps=2, pool_size=64).fit(dataset)
print(spgcl.probe(model.transform(dataset), dataset.labels, dataset.splits, epochs=5))
"""


def succeed(*command, **more):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300, **more)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The folder of the wheel and the source archive."""
    pytest.importorskip("hatchling", reason="no hatchling: pip install '.[dev]'")
    folder = tmp_path_factory.mktemp("built")
    succeed(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


def test_the_wheel_holds_the_package_and_its_data_only(built):
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"spgcl"}
    kept = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src/spgcl").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if name.startswith("spgcl/")} == kept
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as held:
        inside = {name.partition("/")[2] for name in held.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/spgcl/__init__.py"} <= inside


def test_the_first_example_runs_without_the_checkout(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    site = tmp_path / "site"
    # Its dependencies are those of this environment; the package itself comes from the wheel.
    succeed(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, wheel)
    environment = {**os.environ, "PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"}
    where = {"cwd": tmp_path, "env": environment}
    succeed(sys.executable, "-W", "error::UserWarning", "-c", FIRST.format(site=str(site)), **where)
    short = ["--method", "fastrp", "--out", "run", "--threads", "1"]
    succeed(sys.executable, "-m", "spgcl", "fit", *short, **where)
    succeed(sys.executable, "-m", "spgcl", "similar", "run", "3", **where)
