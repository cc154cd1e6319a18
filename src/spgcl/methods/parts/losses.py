"""Contrastive objectives as pure functions of tensors, one per equation."""

from torch import Tensor


def single_pass_contrastive(
    positive: Tensor, negative: Tensor, *, negative_weight: float, anchors: Tensor | None = None
) -> Tensor:
    """The single-pass contrastive loss, Eq. 6 of the SP-GCL paper.

    With `negative_weight` 1 this is the equation; the published code adds the squared similarities over
    the negatives instead of averaging them, which is a weight of K_neg.

    Args:
        positive: Similarities of anchors with their positives, shape (anchors, K_pos).
        negative: Similarities of anchors with their negatives, shape (anchors, K_neg).
        negative_weight: Weight of the repelling term.
        anchors: Which anchors count, as a mask; all if None.
    """
    if anchors is None:
        return -2 * positive.mean() + negative_weight * negative.square().mean()
    terms = -2 * positive.mean(1) + negative_weight * negative.square().mean(1)
    return (terms * anchors).sum() / anchors.sum()
