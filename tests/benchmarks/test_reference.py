"""The reference is the published method: against loops written from its description, and against ours."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from graphs import CPU, seeded
from pyarrow import parquet
from timing import reference
from timing.reference_probe import probe as reference_probe

from spgcl.errors import InputError
from spgcl.evaluation import probe
from spgcl.methods import create
from spgcl.methods.presets import preset

NORMS = ("none", "plain", "affine")


def prepared_reference(dataset, settings):
    data = reference.load(dataset)
    data.x = data.x.double()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        model = reference.Reference(data.num_features, settings).double()
    return model, reference.prepare(data, settings, CPU)


def copy_weights(method, model):
    """Give the reference the weights of an SPGCL."""
    encoder = method.encoder
    for layer, ours in zip((model.first, model.second), encoder.convolutions, strict=True):
        layer.lin.weight.data = ours.weight.data.T.clone()
        layer.bias.data = ours.bias.data.clone()
    # Without batch norm there are none.
    for norm, ours in zip((model.first_norm, model.second_norm), encoder.norms, strict=False):
        norm.load_state_dict(ours.state_dict())
    model.activation.load_state_dict(encoder.activation.state_dict())
    model.head.load_state_dict(method.head.state_dict())


def both(dataset, settings):
    method = create("spgcl", dataset.graph.num_features, seed=3, settings=settings).double()
    prepared = method.prepare(dataset.graph, CPU)
    prepared.graph = replace(prepared.graph, features=prepared.graph.features.double())
    generator = seeded(5)
    for parameter in method.parameters():
        # Biases start at zero and scales at one, which would hide a term that is left out.
        parameter.data += torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    model, data = prepared_reference(dataset, settings)
    copy_weights(method, model)
    return method, prepared, model, data


@pytest.mark.parametrize("normalise_features", [False, True])
@pytest.mark.parametrize("batch_norm", NORMS)
def test_loss_and_gradients_are_ours_where_nothing_is_drawn(
    tiny, tiny_settings, batch_norm, normalise_features
):
    # All nodes as seeds, the whole pool and no repelling leave nothing to chance. More positives than a node
    # has copies in the pool, as those are at similarity 1 whatever the weights.
    settings = tiny_settings(
        hops=1,
        positives=25,
        batch_norm=batch_norm,
        normalise_features=normalise_features,
        dropout=0,
        seeds=60,
        pool_size=0,
        negative_weight=0,
    )
    method, prepared, model, data = both(tiny, settings)
    ours = method.loss(prepared, 0, seeded(0))
    theirs = model.loss(data, *model.draw(data, seeded(0)))

    torch.testing.assert_close(theirs, ours, rtol=1e-6, atol=1e-8)
    ours.backward()
    theirs.backward()
    pairs = [
        (model.first.lin.weight.grad, method.encoder.convolutions[0].weight.grad.T),
        (model.activation.weight.grad, method.encoder.activation.weight.grad),
        (model.head[2].weight.grad, method.head[2].weight.grad),
    ]
    if batch_norm == "none":
        pairs.append((model.second.bias.grad, method.encoder.convolutions[1].bias.grad))
    for mine, other in pairs:
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-7)
    assert float(model.first.lin.weight.grad.abs().max()) > 1e-4


@pytest.mark.parametrize("batch_norm", NORMS)
def test_the_loss_with_negatives_is_ours_up_to_which_ones_are_drawn(tiny, tiny_settings, batch_norm):
    settings = tiny_settings(
        batch_norm=batch_norm, dropout=0, seeds=60, pool_size=0, negatives=2000, negative_weight=50
    )
    method, prepared, model, data = both(tiny, settings)
    with torch.no_grad():
        ours = method.loss(prepared, 0, seeded(0))
        theirs = model.loss(data, *model.draw(data, seeded(0)))

    torch.testing.assert_close(theirs, ours, rtol=0.01, atol=0)


@pytest.mark.parametrize("batch_norm", NORMS)
def test_embeddings_are_ours(tiny, tiny_settings, batch_norm):
    method, prepared, model, data = both(tiny, tiny_settings(batch_norm=batch_norm))

    torch.testing.assert_close(
        torch.from_numpy(reference.embed(model, data)), method.embed(prepared), rtol=1e-5, atol=1e-7
    )


def test_the_loss_is_the_published_sum_over_negatives(tiny, tiny_settings):
    settings = tiny_settings(negatives=7, negative_weight=7, dropout=0, batch_norm="none")
    model, data = prepared_reference(tiny, settings)
    pool, negatives = model.draw(data, seeded(1))
    with torch.no_grad():
        head = model.head(model.encode(data)[pool].clamp(min=0))
        rows = [row / row.norm() for row in head]
        expected = 0.0
        for anchor in range(len(pool)):
            similarities = sorted((float(rows[anchor] @ other) for other in rows), reverse=True)
            expected -= 2 * sum(similarities[:3]) / 3
            expected += sum(float(rows[anchor] @ rows[index]) ** 2 for index in negatives[anchor].tolist())
        assert float(model.loss(data, pool, negatives)) == pytest.approx(expected / len(pool), rel=1e-9)


def test_the_pool_has_an_entry_for_every_seed_that_reaches_a_node(tiny, tiny_settings):
    settings = tiny_settings(seeds=60, pool_size=0, hops=2)
    model, data = prepared_reference(tiny, settings)
    pool, negatives = model.draw(data, seeded(0))
    near = tiny.graph.adjacency.toarray() + np.eye(60)

    assert np.array_equal(np.bincount(pool.numpy(), minlength=60), np.count_nonzero(near @ near, axis=1))
    assert negatives.shape == (len(pool), 7)
    assert int(negatives.min()) >= 0
    assert int(negatives.max()) < len(pool)


def test_a_pool_is_cut_to_its_size(tiny, tiny_settings):
    model, data = prepared_reference(tiny, tiny_settings(pool_size=11))

    assert len(model.draw(data, seeded(0))[0]) == 11


def test_training_lowers_the_loss(tiny, tiny_settings):
    model, data = prepared_reference(tiny, tiny_settings(learning_rate=0.02, dropout=0))
    losses = reference.train(model, data, 30, seed=0)

    assert len(losses) == 30
    assert np.mean(losses[-5:]) < np.mean(losses[:5])


@pytest.mark.parametrize("name", reference.RULES)
def test_other_rules_are_refused(tiny_settings, name):
    other = {
        "encoder": "sage",
        "layers": 1,
        "head_input": "plain",
        "pool": "set",
        "anchors": "seeds",
        "own_positive": False,
        "negatives_from": "all",
    }
    with pytest.raises(InputError, match=f"{name} is .*but the reference has .*--no-reference"):
        reference.require_rules({**tiny_settings(), name: other[name]})


def test_the_published_preset_has_the_reference_s_rules():
    settings = preset("published", "spgcl", "cora")

    assert {name: settings[name] for name in reference.RULES if name in settings} == {
        name: value for name, value in reference.RULES.items() if name not in ("encoder", "layers")
    }


@pytest.mark.parametrize("metric", ["accuracy", "roc_auc"])
def test_the_probe_scores_as_ours_does(tiny, metric):
    generator = np.random.default_rng(0)
    # Well apart, so that neither start nor order of operations decides a score.
    centres = 3 * tiny.labels[:, None].astype(np.float32)
    vectors = generator.standard_normal((60, 4)).astype(np.float32) + centres
    task = (vectors, tiny.labels, tiny.splits)
    ours = probe(*task, metric=metric, epochs=60, learning_rate=0.1).mean
    theirs = reference_probe(*task, metric=metric, epochs=60, learning_rate=0.1, device=CPU)

    assert theirs == pytest.approx(ours, abs=3)
    assert theirs > 85


def test_written_embeddings_can_be_read(tmp_path):
    vectors = np.arange(6, dtype=np.float32).reshape(3, 2)
    reference.write(tmp_path / "vectors.parquet", vectors, np.array([4, 5, 6]))
    columns = parquet.read_table(tmp_path / "vectors.parquet").to_pydict()

    assert columns == {"node": [4, 5, 6], "embedding": vectors.tolist()}


def test_draws_differ_from_step_to_step(tiny, tiny_settings):
    model, data = prepared_reference(tiny, tiny_settings())
    generator = seeded(0)
    pools = [tuple(model.draw(data, generator)[0].tolist()) for _ in range(3)]

    assert all(one != other for one, other in itertools.combinations(pools, 2))
