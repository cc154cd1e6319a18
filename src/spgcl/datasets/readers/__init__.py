"""One reader per file format: checked paths by role -> graph, labels and published splits."""

from collections.abc import Callable

from spgcl.datasets.readers.archives import read_gnn_benchmark, read_heterophilous
from spgcl.datasets.readers.contents import Contents
from spgcl.datasets.readers.genius import read_genius
from spgcl.datasets.readers.geom_gcn import read_geom_gcn
from spgcl.datasets.readers.planetoid import read_planetoid
from spgcl.datasets.readers.twitch import read_musae, read_twitch_gamers
from spgcl.datasets.readers.wikics import read_wikics

# With `directed`, a reader keeps the direction of the publisher's edge list.
READERS: dict[str, Callable[..., Contents]] = {
    "planetoid": read_planetoid,
    "gnn-benchmark": read_gnn_benchmark,
    "heterophilous": read_heterophilous,
    "geom-gcn": read_geom_gcn,
    "musae": read_musae,
    "wikics": read_wikics,
    "genius": read_genius,
    "twitch-gamers": read_twitch_gamers,
}

__all__ = ["READERS", "Contents"]
