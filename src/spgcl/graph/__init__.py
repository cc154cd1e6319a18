"""The graph as a value."""

from spgcl.graph.graph import Graph

__all__ = ["Graph"]
