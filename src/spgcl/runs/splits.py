"""Splits as a user asks for them: percent of the labelled nodes, folds, or own masks in a file."""

import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.datasets import Splits, k_fold_splits, random_splits
from spgcl.errors import InputError, shown
from spgcl.graph import Graph
from spgcl.io.objects import is_frame
from spgcl.io.opening import opening, suffix_of

PARTS = ("train", "validation", "test")
_NAMES = {"train": "train", "val": "validation", "valid": "validation", "validation": "validation"}
_NAMES |= {"test": "test", "": "", "none": ""}
_ADVICE = "give percent such as 60/20/20, folds such as 5-fold, or a file of masks"


def chosen_splits(asked: Any, labels: NDArray[np.int64], graph: Graph, *, seed: int = 0) -> Splits:
    """Splits from words ("60/20/20", "5-fold"), a file, a table, or masks; unlabelled nodes are in no part.

    Args:
        asked: Words; a table by node id with one column per split, which holds train, validation or test; an
            `.npz` with `train_masks`, `val_masks` and `test_masks`; `Splits`; or three arrays of masks.
        labels: One class per node, -1 for none.
        graph: The graph whose nodes are split.
        seed: Decides splits that are drawn.
    """
    if isinstance(asked, Splits):
        return asked
    if isinstance(asked, str) and (folds := re.fullmatch(r"(\d+)-?fold", asked)):
        return k_fold_splits(labels, int(folds[1]), seed=seed)
    if isinstance(asked, str) and (shares := re.fullmatch(r"([\d.]+)/([\d.]+)/([\d.]+)", asked)):
        return _by_shares(asked, shares.groups(), labels, seed)
    if isinstance(asked, str | PathLike) and suffix_of(Path(asked)) == ".npz":
        return _masked(_read_masks(Path(asked)), labels, source="own")
    if isinstance(asked, str | PathLike) and not Path(asked).suffix:
        raise InputError(f"splits {str(asked)!r} are not understood; {_ADVICE}")
    if isinstance(asked, str | PathLike) or is_frame(asked):
        return _masked(_read_table(asked, graph), labels, source="own")
    if isinstance(asked, Sequence) and len(asked) == len(PARTS):
        return _masked([np.asarray(part) for part in asked], labels, source="own")
    raise InputError(f"splits of type {type(asked).__name__} are not understood; {_ADVICE}")


def _by_shares(asked: str, shares: Sequence[str], labels: NDArray[np.int64], seed: int) -> Splits:
    try:
        train, validation, test = (float(share) / 100 for share in shares)
    except ValueError:
        raise InputError(f"splits {asked!r} are not three numbers; {_ADVICE}") from None
    if min(train, validation, test) <= 0 or abs(train + validation + test - 1) > 1e-6:
        raise InputError(f"splits {asked!r} are not three percentages of sum 100; {_ADVICE}")
    return random_splits(labels, seed=seed, fractions=(train, validation, test), stratified=True)


def _masked(masks: Sequence[NDArray[Any]], labels: NDArray[np.int64], *, source: str) -> Splits:
    """Masks of shape (splits, nodes) or (nodes,), without the nodes that have no label."""
    rows = []
    for part, mask in zip(PARTS, masks, strict=True):
        mask = np.atleast_2d(mask)
        if mask.dtype.kind != "b" or mask.ndim != 2 or mask.shape[1] != len(labels):
            raise InputError(
                f"the {part} masks are {mask.dtype} of shape {mask.shape}; give truth values for "
                f"{len(labels)} nodes, one row per split"
            )
        rows.append(mask & (labels >= 0))
    train, validation, test = rows
    return Splits(train, validation, test, source)


def _read_masks(path: Path) -> list[NDArray[Any]]:
    names = [f"{part}_masks" for part in ("train", "val", "test")]
    with opening(path, "NumPy archive"), path.open("rb") as file, np.load(file, allow_pickle=False) as held:
        missing = [name for name in names if name not in held.files]
        if missing:
            raise InputError(f"{missing[0]!r} is missing; masks are called {', '.join(names)}")
        return [np.atleast_2d(held[name]).astype(np.bool_) for name in names]


def _read_table(source: Any, graph: Graph) -> list[NDArray[np.bool_]]:
    from spgcl.io.tables import node_rows, read_table

    table = read_table(source, named_columns=True)
    key = table.key(None)
    rows, others = node_rows(table, key, graph), table.others(key)
    if not others:
        raise InputError(f"{table.path}: no column of parts besides {table.names[key]!r}")
    masks = np.zeros((len(PARTS), len(others), graph.num_nodes), dtype=np.bool_)
    for split, column in enumerate(others):
        for index, cell in enumerate(table.columns[column].to_pylist()):
            part = _NAMES.get(str("" if cell is None else cell).strip().lower())
            if part is None:
                where = table.cell(index, column)
                raise InputError(f"{where}: {shown(cell)} is no part; write train, validation or test")
            if part:
                masks[PARTS.index(part), split, rows[index]] = True
    return list(masks)
