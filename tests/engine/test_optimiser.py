"""Adam against torch's own, and that a process which trains and probes never imports torch's compiler."""

import subprocess
import sys
from itertools import pairwise

import pytest
import torch

from spgcl.engine.optimiser import Adam
from spgcl.engine.recording import captured, side_stream

SHAPES = [(7, 5), (33,), (), (4, 3, 2)]
DECAYS = (0.3, 0.0)
RATES = [0.05, 0.05, 0.0, 0.2, 0.013, 1e-4]
KINDS = pytest.mark.parametrize("decoupled", [False, True], ids=["adam", "adamw"])


def make_weights(dtype=torch.float32, device="cpu"):
    generator = torch.Generator().manual_seed(0)
    drawn = (torch.randn(shape, generator=generator, dtype=dtype) for shape in SHAPES)
    return [torch.nn.Parameter(weights.to(device)) for weights in drawn]


def grouped(weights):
    return [(weights[:2], DECAYS[0]), (weights[2:], DECAYS[1])]


def set_gradients(weights, number):
    """Other ones at every update; the second weight has none at each third."""
    generator = torch.Generator().manual_seed(number)
    for index, weight in enumerate(weights):
        gradient = torch.randn(weight.shape, generator=generator, dtype=weight.dtype)
        weight.grad = None if index == 1 and number % 3 == 1 else gradient.to(weight.device)


def update(optimiser, weights, numbers):
    for number in numbers:
        set_gradients(weights, number)
        optimiser.rate = RATES[number]
        optimiser.step()


def as_bytes(tensors):
    return [tensor.detach().numpy().tobytes() for tensor in tensors]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@KINDS
def test_weights_and_moments_are_those_of_torch(decoupled, dtype):
    weights, theirs = make_weights(dtype), make_weights(dtype)
    optimiser = Adam(grouped(weights), RATES[0], decoupled=decoupled)
    kind = torch.optim.AdamW if decoupled else torch.optim.Adam
    groups = [{"params": part, "weight_decay": decay} for part, decay in grouped(theirs)]
    reference = kind(groups, lr=RATES[0], fused=True)
    for number, rate in enumerate(RATES):
        update(optimiser, weights, [number])
        set_gradients(theirs, number)
        for group in reference.param_groups:
            group["lr"] = rate
        reference.step()
        assert as_bytes(weights) == as_bytes(theirs)
    found = optimiser.state()
    for index, weight in enumerate(theirs):
        names = {"updates": "step", "first": "exp_avg", "second": "exp_avg_sq"}
        for name, their_name in names.items():
            assert as_bytes([found[f"{index}/{name}"]]) == as_bytes([reference.state[weight][their_name]])
    assert len(found) == 3 * len(SHAPES)


@KINDS
def test_decay_is_of_its_group_and_kind(decoupled):
    """Without a gradient from a loss Adam goes by the sign of the decay, AdamW by its size."""
    decayed, kept = (torch.tensor([2.0, -0.5]) for _ in range(2))
    decayed.grad, kept.grad = torch.zeros(2), torch.zeros(2)
    Adam([([decayed], 0.1), ([kept], 0.0)], 0.01, decoupled=decoupled).step()
    expected = [2 - 0.01 * 0.1 * 2, -0.5 + 0.01 * 0.1 * 0.5] if decoupled else [1.99, -0.49]
    assert decayed.tolist() == pytest.approx(expected, rel=1e-6) and kept.tolist() == [2.0, -0.5]


def test_a_plain_tensor_whose_gradient_is_set_is_trained():
    weights, theirs = torch.linspace(-1, 1, 24).view(2, 3, 4), torch.linspace(-1, 1, 24).view(2, 3, 4)
    optimiser = Adam([([weights], 0.0)], 0.1, decoupled=False)
    reference = torch.optim.Adam([theirs], lr=0.1, fused=True)
    for number in range(5):
        set_gradients([weights], number)
        set_gradients([theirs], number)
        optimiser.step()
        reference.step()
    assert as_bytes([weights]) == as_bytes([theirs]) and not weights.requires_grad


def test_what_was_kept_goes_on_as_it_would_have():
    weights, resumed = make_weights(), make_weights()
    optimiser = Adam(grouped(weights), RATES[0], decoupled=True)
    update(optimiser, weights, range(4))
    state = {name: value.clone() for name, value in optimiser.state().items()}
    for weight, other in zip(weights, resumed, strict=True):
        other.data.copy_(weight.data)
    update(optimiser, weights, range(4, 6))
    # Another process knows the rates, but starts with none of what was kept.
    later = Adam(grouped(resumed), RATES[0], decoupled=True)
    later.load(state)
    update(later, resumed, range(4, 6))
    assert as_bytes(resumed) == as_bytes(weights)
    assert as_bytes(later.state().values()) == as_bytes(optimiser.state().values())


def test_dropped_gradients_are_gone():
    weights = make_weights()
    optimiser = Adam(grouped(weights), 0.1, decoupled=True)
    set_gradients(weights, 0)
    optimiser.drop_gradients()
    before = as_bytes(weights)
    optimiser.step()
    assert all(weight.grad is None for weight in weights) and as_bytes(weights) == before


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@KINDS
def test_captured_updates_are_the_computed_ones_at_a_changing_rate(decoupled):
    gradients = [torch.randn(len(RATES), *shape, device="cuda") for shape in SHAPES]
    computed, replayed = make_weights(device="cuda"), make_weights(device="cuda")
    theirs, ours = (Adam(grouped(weights), RATES[0], decoupled=decoupled) for weights in (computed, replayed))
    for weight, gradient in zip(replayed, gradients, strict=True):
        weight.grad = gradient[0].clone()
    with side_stream():
        ours.step()
    replay, _ = captured(ours.step)
    seen = []
    for number, rate in enumerate(RATES):
        theirs.rate = ours.rate = rate
        for weight, other, gradient in zip(computed, replayed, gradients, strict=True):
            weight.grad = gradient[number].clone()
            other.grad.copy_(gradient[number])
        theirs.step()
        if number:
            replay()
        for weight, other in zip(computed, replayed, strict=True):
            assert torch.equal(weight, other)
        seen.append(replayed[0].detach().clone())
    # At a rate of zero nothing moves, by decay neither.
    assert [torch.equal(*pair) for pair in pairwise(seen)] == [rate == 0 for rate in RATES[1:]]


FRESH = """
import sys
import numpy as np
import torch
import spgcl
from spgcl.methods.parts import skipgram
from spgcl.engine.device import arithmetic
dataset = spgcl.load("csbm-homophilic")
settings = {
    "spgcl": {"hidden": 8},
    "bgrl": {"hidden": 8, "embedding_width": 8, "predictor_width": 8},
    "deepwalk": {"hidden": 8, "walks": 2, "walk_length": 5},
    "gcn": {"hidden": 8},
    "gmi": {"hidden": 8},
}
assert skipgram.WALKS_PER_BLOCK > 100
skipgram.WALKS_PER_BLOCK = 100
for name, sizes in settings.items():
    labels = dataset.labels if name == "gcn" else None
    vectors = spgcl.Embedder(method=name, steps=3, device="cpu", **sizes).fit_transform(dataset, labels)
    assert np.isfinite(vectors).all()
    assert "torch._dynamo" not in sys.modules, name
spgcl.probe(vectors, dataset.labels, dataset.splits, epochs=2)
assert "torch._dynamo" not in sys.modules, "probe"
with arithmetic(torch.device("cuda"), deterministic=True):
    assert "torch._dynamo" not in sys.modules, "arithmetic on CUDA"
"""


def test_training_and_probing_do_without_the_compiler():
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
