"""Points of the plane: principal components against an exact decomposition, UMAP on clusters."""

import os
import subprocess
import sys

import numpy as np
import pytest
from pyarrow import parquet

from spgcl.cli import run
from spgcl.evaluation.neighbours import nearest_nodes
from spgcl.io import read_coordinates, read_embeddings
from spgcl.runs.plane import principal_components, principal_plane, umap_plane

QUICK = [
    "--threads",
    "1",
    "--method",
    "spgcl",
    "--steps",
    "3",
    "--set",
    "hidden=8",
    "--set",
    "seeds=16",
    "--set",
    "pool_size=64",
]


def rows_with_axes(num_rows=400, width=20):
    generator = np.random.default_rng(0)
    scales = np.concatenate([[9.0, 5.0, 3.0], np.full(width - 3, 0.3)])
    turned = np.linalg.qr(generator.standard_normal((width, width)))[0]
    return ((generator.standard_normal((num_rows, width)) * scales) @ turned + 7).astype(np.float32)


def test_components_are_those_of_the_singular_value_decomposition():
    rows = rows_with_axes()
    found = principal_components(rows, 3)
    left, values, axes = np.linalg.svd(rows.astype(np.float64) - rows.mean(axis=0), full_matrices=False)
    signs = np.sign(axes[np.arange(3), np.abs(axes[:3]).argmax(axis=1)])
    np.testing.assert_allclose(found, left[:, :3] * values[:3] * signs, atol=1e-2)


@pytest.mark.parametrize("scale", [1e-40, 1e-25, 1e20, 1e36])
def test_rows_of_any_size_have_components_in_proportion(scale):
    rows = rows_with_axes()
    expected = principal_components(rows, 3)
    found = principal_components((rows * np.float64(scale)).astype(np.float32), 3) / np.float64(scale)
    np.testing.assert_allclose(found, expected, atol=0.1 if scale == 1e-40 else 1e-2)


def test_components_beyond_the_largest_number_stay_finite():
    rows = np.where(np.arange(400) % 2, 3e38, -3e38)[:, None] * np.ones(16)
    assert np.isfinite(principal_components(rows.astype(np.float32), 2)).all()


def test_the_same_rows_give_the_same_bytes_and_leave_torch_alone():
    import torch

    rows = rows_with_axes()
    before = torch.random.get_rng_state()
    once, again = principal_plane(rows), principal_plane(rows)
    assert once.points.tobytes() == again.points.tobytes() and once.projection == "pca"
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (1, 5), (2, 2)], ids=str)
def test_what_has_no_second_axis_gets_a_zero(shape):
    points = principal_plane(np.arange(np.prod(shape), dtype=np.float32).reshape(shape)).points
    assert points.shape == (shape[0], 2) and np.isfinite(points).all()
    assert not points[:, 1].any()


def test_more_rows_than_are_looked_at_are_all_placed(monkeypatch):
    rows = rows_with_axes(900)
    exact = principal_plane(rows).points
    monkeypatch.setattr("spgcl.runs.plane._MOST_ROWS", 300)
    monkeypatch.setattr("spgcl.runs.plane._BLOCK_ROWS", 128)
    found = principal_plane(rows).points
    assert found.shape == (900, 2)
    for axis in range(2):
        assert abs(np.corrcoef(found[:, axis], exact[:, axis])[0, 1]) > 0.99


def test_umap_keeps_clusters_apart_and_repeats_itself():
    pytest.importorskip("umap", reason="no UMAP: pip install '.[report]'")
    generator = np.random.default_rng(1)
    classes = np.repeat([0, 1], 40)
    rows = generator.standard_normal((2, 16))[classes] * 3 + 0.3 * generator.standard_normal((80, 16))
    rows = rows.astype(np.float32)
    plane = umap_plane(rows, *nearest_nodes(rows, 14))
    centres = [plane.points[classes == value].mean(axis=0) for value in (0, 1)]
    spread = max(plane.points[classes == value].std(axis=0).max() for value in (0, 1))
    assert plane.projection == "umap" and np.linalg.norm(centres[0] - centres[1]) > 2 * spread
    assert umap_plane(rows, *nearest_nodes(rows, 14)).points.tobytes() == plane.points.tobytes()


def test_vectors_that_have_collapsed_are_placed_all_the_same():
    pytest.importorskip("umap", reason="no UMAP: pip install '.[report]'")
    rows = np.ones((40, 5), dtype=np.float32)
    plane = umap_plane(rows, *nearest_nodes(rows, 14))
    assert plane.projection == "pca" and not plane.points.any()


def test_umap_that_can_keep_nothing_on_disk_is_one_line():
    """As for a user without a home who may not write where it is installed: Numba finds no folder."""
    pytest.importorskip("umap", reason="no UMAP: pip install '.[report]'")
    work = "import numpy as np; from spgcl.runs.plane import umap_plane; umap_plane(*[np.ones((40, 3))] * 3)"
    done = subprocess.run(
        [sys.executable, "-c", work],
        env={**os.environ, "NUMBA_CACHE_LOCATOR_CLASSES": "ZipCacheLocator"},
        capture_output=True,
        text=True,
    )
    line = done.stderr.splitlines()[-1]
    assert line.startswith("spgcl.errors.InputError") and "NUMBA_CACHE_DIR" in line


def test_fit_writes_the_principal_plane_beside_the_embeddings(tmp_path):
    out = tmp_path / "run"
    assert run(["fit", "--out", str(out), *QUICK]) == 0
    table = parquet.read_table(out / "embeddings.parquet")
    vectors, _ = read_embeddings(out)
    points = np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=1)
    assert points.tobytes() == principal_plane(vectors).points.tobytes()
    assert read_coordinates(out / "embeddings.parquet").projection == "pca"
