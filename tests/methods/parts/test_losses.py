import pytest
import torch

from spgcl.methods.parts.losses import single_pass_contrastive


def dot(one, other):
    return sum(a * b for a, b in zip(one.tolist(), other.tolist(), strict=True))


def naive_loss(vectors, anchors, positives, negatives, weight):
    """Eq. 6 of the paper, term by term: `positives[i]` and `negatives[i]` belong to `anchors[i]`."""
    attraction, num_positives = 0.0, 0
    repulsion, num_negatives = 0.0, 0
    for anchor, near, far in zip(anchors, positives, negatives, strict=True):
        for other in near:
            attraction += dot(vectors[anchor], vectors[other])
            num_positives += 1
        for other in far:
            repulsion += dot(vectors[anchor], vectors[other]) ** 2
            num_negatives += 1
    return -2 / num_positives * attraction + weight / num_negatives * repulsion


@pytest.mark.parametrize("weight", [0.0, 1.0, 100.0])
@pytest.mark.parametrize(
    ("num_anchors", "num_positives", "num_negatives"), [(1, 1, 1), (6, 3, 10), (4, 5, 2)]
)
def test_the_loss_is_equation_six(num_anchors, num_positives, num_negatives, weight):
    generator = torch.Generator().manual_seed(num_anchors)
    vectors = torch.randn(20, 7, dtype=torch.float64, generator=generator)
    vectors = vectors / vectors.norm(dim=1, keepdim=True)
    anchors = torch.randint(20, (num_anchors,), generator=generator)
    positives = torch.randint(20, (num_anchors, num_positives), generator=generator)
    negatives = torch.randint(20, (num_anchors, num_negatives), generator=generator)
    near = (vectors[anchors][:, None] * vectors[positives]).sum(2)
    far = (vectors[anchors][:, None] * vectors[negatives]).sum(2)
    expected = naive_loss(vectors, anchors.tolist(), positives.tolist(), negatives.tolist(), weight)
    assert single_pass_contrastive(near, far, negative_weight=weight).item() == pytest.approx(expected)


def test_a_weight_of_the_number_of_negatives_sums_over_them():
    near, far = torch.rand(5, 3), torch.rand(5, 8)
    summed = -2 * near.mean() + far.square().sum(dim=1).mean()
    torch.testing.assert_close(single_pass_contrastive(near, far, negative_weight=8), summed)


def test_gradients_match_finite_differences():
    near = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    far = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda one, other: single_pass_contrastive(one, other, negative_weight=7.5), (near, far)
    )


def test_alike_positives_and_orthogonal_negatives_are_the_minimum():
    assert single_pass_contrastive(torch.ones(2, 2), torch.zeros(2, 4), negative_weight=3).item() == -2
