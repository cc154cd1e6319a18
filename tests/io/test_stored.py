"""Labels and masks in the files of graphs."""

import numpy as np
import pytest
import torch
from graphs import refusing
from torch_geometric.data import Data

from spgcl.io import read_graph
from spgcl.io.stored import read_stored_labels

PATH = torch.tensor([[0, 1, 2], [1, 2, 3]])
PARTS = {"train": [True, False, False, False], "val": [False, True, False, False]}
MASKS = {**PARTS, "test": [False, False, True, True]}


def saved(path, **fields):
    if path.suffix == ".npz":
        np.savez(path, node_features=np.eye(4), edges=PATH.numpy().T, **fields)
    else:
        values = {name: torch.as_tensor(value) for name, value in fields.items()}
        torch.save(Data(x=torch.eye(4), edge_index=PATH, **values), path)
    return path


def stored(path, **options):
    return read_stored_labels(path, read_graph(path, **options))


@pytest.mark.parametrize(("name", "field"), [("g.pt", "y"), ("g.npz", "node_labels")])
def test_labels_without_masks(tmp_path, name, field):
    found = stored(saved(tmp_path / name, **{field: np.array([5, 3, 5, -1])}))
    assert found.labels.tolist() == [1, 0, 1, -1] and found.class_names == ("3", "5")
    assert found.masks is None and found.field == field
    assert stored(saved(tmp_path / name)) is None


def test_masks_of_one_split_and_of_several(tmp_path):
    one = {f"{part}_mask": np.array(mask) for part, mask in MASKS.items()}
    found = stored(saved(tmp_path / "one.pt", y=np.array([[0], [1], [0], [1]]), **one))
    assert [part.tolist() for part in found.masks] == [[mask] for mask in MASKS.values()]
    two = {name: np.stack([mask, mask[::-1]], axis=1) for name, mask in one.items()}
    found = stored(saved(tmp_path / "two.pt", y=np.array([0, 1, 0, 1]), **two))
    assert [part.tolist() for part in found.masks] == [[mask, mask[::-1]] for mask in MASKS.values()]
    rows = {f"{part}_masks": np.array([mask, mask[::-1]]) for part, mask in MASKS.items()}
    found = stored(saved(tmp_path / "two.npz", node_labels=np.array([0, 1, 0, 1]), **rows))
    assert [part.tolist() for part in found.masks] == [[mask, mask[::-1]] for mask in MASKS.values()]


def test_labels_and_masks_follow_the_order_of_the_nodes(tmp_path):
    masks = {f"{part}_mask": np.array(mask) for part, mask in MASKS.items()}
    path = saved(tmp_path / "g.pt", y=np.array([7, 8, 9, 9]), **masks)
    (tmp_path / "f.csv").write_text("id,a\n3,1\n0,2\n2,3\n1,4\n")
    found = stored(path, features=tmp_path / "f.csv")
    assert found.labels.tolist() == [2, 0, 2, 1] and found.masks[0].tolist() == [[False, True, False, False]]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"y": np.eye(4)}, "y of shape (4, 4)"),
        ({"y": np.array([1])}, "1 entries of y"),
        ({"y": np.array([0.5, 1, 2, 3])}, "y, row 0: 0.5 is not a class"),
        ({"y": np.ones(4)}, "y: all nodes have the label 1"),
        (
            {"y": np.arange(4), **dict.fromkeys(("train_mask", "val_mask", "test_mask"), np.ones(3, bool))},
            "a mask of shape (1, 3) does not fit 4 nodes",
        ),
    ],
    ids=["several per node", "of the graph", "fractions", "one class", "masks"],
)
def test_what_is_not_one_class_per_node_is_refused(tmp_path, fields, message):
    with refusing(message):
        stored(saved(tmp_path / "g.pt", **fields))
