"""GRACE: deep graph contrastive representation learning (Zhu et al., 2020)."""

from spgcl.methods.parts.two_views import TwoViews


class GRACE(TwoViews):
    """Two views by removed edges and masked features; a node is contrasted with all others of both views."""
