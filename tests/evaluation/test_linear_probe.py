from dataclasses import replace

import numpy as np
import pytest
import torch
from made_tasks import make_splits, make_task
from packing import needs_packing
from sklearn.metrics import roc_auc_score

from spgcl.errors import InputError
from spgcl.evaluation import linear_probe, probe, tuned_probe
from spgcl.evaluation.linear_probe import Training, initial_weights
from spgcl.evaluation.stacking import stacks


def measure(metric, logits, labels):
    if metric == "accuracy":
        return 100 * float((logits.argmax(1) == labels).double().mean())
    return 100 * roc_auc_score(labels, logits[:, 1] - logits[:, 0])


def literal_probe(embeddings, labels, splits, split, weight, bias, metric, epochs, learning_rate):
    """The paper's sentence as a loop: one nn.Linear, one Adam, one split."""
    rows, classes = torch.from_numpy(embeddings), torch.from_numpy(labels)
    parts = {part: torch.from_numpy(getattr(splits, part)[split]) for part in ("train", "validation", "test")}
    layer = torch.nn.Linear(rows.shape[1], len(bias))
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    optimiser = torch.optim.Adam(layer.parameters(), lr=learning_rate)
    best = (-1.0, 0, 0.0)
    for epoch in range(1, epochs + 1):
        optimiser.zero_grad()
        train = parts["train"]
        torch.nn.functional.cross_entropy(layer(rows[train]), classes[train]).backward()
        optimiser.step()
        with torch.no_grad():
            logits = layer(rows)
        validation = measure(metric, logits[parts["validation"]], classes[parts["validation"]])
        # Rounding inside scikit-learn must not decide between epochs that rank the nodes equally well.
        if validation > best[0] + 1e-9:
            best = (validation, epoch, measure(metric, logits[parts["test"]], classes[parts["test"]]))
    return best


@pytest.mark.parametrize(("metric", "num_classes"), [("accuracy", 4), ("roc_auc", 2)])
def test_equals_a_literal_loop_over_splits_and_restarts(metric, num_classes):
    embeddings, labels = make_task(num_classes=num_classes, noise=3)
    splits = make_splits(300, [(60, 50), (90, 40)])
    scores = probe(embeddings, labels, splits, metric=metric, starts=2, seed=3, epochs=80, learning_rate=1e-2)
    weights, biases = initial_weights(2, 2, num_classes, embeddings.shape[1], seed=3)
    assert [(score.split, score.start) for score in scores.splits] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for score in scores.splits:
        weight, bias = weights[score.split, score.start], biases[score.split, score.start]
        validation, epoch, test = literal_probe(
            embeddings, labels, splits, score.split, weight, bias, metric, 80, 1e-2
        )
        assert score.validation == pytest.approx(validation, abs=0.1)
        assert score.test == pytest.approx(test, abs=0.1)
        assert score.epoch == epoch


def test_one_split_gets_ten_restarts(task):
    scores = probe(*task, make_splits(300, [(60, 50)]), epochs=20, learning_rate=1e-2)
    tests = [score.test for score in scores.splits]
    assert len(tests) == 10
    assert len(set(tests)) > 1
    assert scores.std_over == "probe starts"
    assert scores.mean == pytest.approx(np.mean(tests))
    assert scores.std == pytest.approx(np.std(tests))
    assert str(scores) == f"{scores.mean:.2f} ± {scores.std:.2f} accuracy over 10 probe starts"


def test_several_splits_get_one_restart_each(task, uneven_splits):
    scores = probe(*task, uneven_splits, epochs=20)
    assert len(scores.splits) == 3
    assert str(scores).endswith("accuracy over 3 splits")


@pytest.mark.parametrize("packed", [False, pytest.param(True, marks=needs_packing)])
@pytest.mark.parametrize(
    ("free_columns", "most_bytes", "groups"), [(12, 2**30, [1]), (0, 2**30, [3]), (0, 1, [1, 1, 1])]
)
def test_how_splits_are_stacked_does_not_matter(
    task, uneven_splits, monkeypatch, free_columns, most_bytes, groups, packed
):
    monkeypatch.setattr("spgcl.evaluation.stacking.free_columns", lambda _: free_columns)
    monkeypatch.setattr("spgcl.engine.fixed_rows.can_pack", lambda _: packed)
    monkeypatch.setitem(linear_probe.MOST_BYTES, "cpu", most_bytes)
    rows, labels = (torch.from_numpy(part) for part in task)
    stacked = stacks(rows, labels, uneven_splits, 4, most_bytes={"cuda": most_bytes})
    assert [len(stack.train) for stack in stacked] == groups
    weights, biases = initial_weights(3, 1, 4, rows.shape[1], seed=0)
    for score in probe(*task, uneven_splits, epochs=45, learning_rate=1e-2).splits:
        initial = weights[score.split, 0], biases[score.split, 0]
        expected = literal_probe(*task, uneven_splits, score.split, *initial, "accuracy", 45, 1e-2)
        assert (score.validation, score.epoch, score.test) == pytest.approx(expected)


def test_a_round_may_be_measured_in_parts(task, uneven_splits, monkeypatch):
    whole = probe(*task, uneven_splits, epochs=45, learning_rate=1e-2)
    # Seven epochs of 3 splits, 4 classes and 80 rows of 4 bytes.
    monkeypatch.setattr("spgcl.evaluation.linear_probe._LOGIT_BYTES", 7 * 3 * 4 * 80 * 4)
    assert probe(*task, uneven_splits, epochs=45, learning_rate=1e-2) == whole


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_captured_epochs_are_the_computed_ones(task, uneven_splits, monkeypatch):
    rows, labels = (torch.from_numpy(part).cuda() for part in task)
    (stack,) = stacks(rows, labels, uneven_splits, 8)
    weights = torch.randn(3, 2, 4, stack.train.shape[-1], device="cuda")
    captured = Training(stack, weights, 1e-2)
    monkeypatch.setattr("spgcl.evaluation.linear_probe.can_capture", lambda _: False)
    computed = Training(stack, weights, 1e-2)
    # Computed on a side stream, replayed three times, and the rest of a round.
    for epochs in (20, 20, 20, 20, 7):
        torch.testing.assert_close(captured.advance(epochs), computed.advance(epochs), rtol=1e-4, atol=1e-4)
    assert captured._replay is not None
    assert computed._replay is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize(("metric", "num_classes"), [("accuracy", 4), ("roc_auc", 2)])
def test_cuda_scores_as_the_cpu_does(uneven_splits, metric, num_classes):
    embeddings, labels = make_task(num_classes=num_classes, noise=3)
    on_cpu, on_cuda = (
        probe(embeddings, labels, uneven_splits, metric=metric, epochs=110, learning_rate=1e-2, device=device)
        for device in ("cpu", "cuda")
    )
    assert [score.test for score in on_cuda.splits] == pytest.approx(
        [score.test for score in on_cpu.splits], abs=0.1
    )


def test_progress_rises_to_the_end_over_all_stacks(task, uneven_splits, monkeypatch):
    monkeypatch.setattr("spgcl.evaluation.stacking.free_columns", lambda _: 0)
    monkeypatch.setitem(linear_probe.MOST_BYTES, "cpu", 1)
    reported: list[float] = []
    probe(*task, uneven_splits, epochs=60, progress=reported.append)
    assert reported == sorted(reported)
    assert (reported[0], reported[-1]) == (0, 1)
    assert len(reported) == 3 * len(uneven_splits) + 1


def test_the_seed_decides(task, uneven_splits):
    first, second = (probe(*task, uneven_splits, epochs=5, seed=seed) for seed in (1, 1))
    assert first == second
    assert probe(*task, uneven_splits, epochs=5, seed=2) != first


def test_test_labels_change_nothing_but_the_test_score(task):
    embeddings, labels = task
    splits = make_splits(300, [(60, 50)])
    changed = np.where(splits.test[0], (labels + 1) % 4, labels)
    first, second = (probe(embeddings, values, splits, epochs=30) for values in (labels, changed))
    assert [(score.validation, score.epoch) for score in first.splits] == [
        (score.validation, score.epoch) for score in second.splits
    ]
    assert first.mean != second.mean


def test_a_class_may_be_absent_from_the_training_part(task):
    embeddings, labels = task
    splits = make_splits(300, [(60, 50)])
    without = replace(splits, train=splits.train & (labels != 3))
    assert 25 < probe(embeddings, labels, without, starts=1, epochs=100, learning_rate=1e-2).mean < 90


def test_as_record_leaves_out_what_the_protocol_does_not_have(task, uneven_splits):
    record = probe(*task, uneven_splits, epochs=2).as_record()
    assert set(record) == {"metric", "protocol", "mean", "std", "std_over", "splits", "others"}
    assert set(record["splits"][0]) == {"split", "start", "validation", "test", "epoch", "others"}


def corrupt(task, part):
    embeddings, labels = task[0].copy(), task[1].copy()
    if part == "nan":
        embeddings[7, 2] = np.nan
    elif part == "unlabelled":
        labels[5] = -1
    return {
        "short embeddings": (embeddings[:-1], labels),
        "short labels": (embeddings, labels[:-1]),
        "one class": (embeddings, 0 * labels),
        "text": (embeddings, labels.astype(str)),
    }.get(part, (embeddings, labels))


@pytest.mark.parametrize("scorer", [probe, tuned_probe])
@pytest.mark.parametrize(
    ("part", "named"),
    [
        ("nan", "node 7 .*nan .*column 2"),
        ("short embeddings", "299 embeddings .*300"),
        ("short labels", "299 labels .*300"),
        ("one class", "every label is 0"),
        ("unlabelled", "node 5 .*split 0 .*no label"),
        ("text", "labels .*<U"),
    ],
)
def test_broken_input_is_refused(task, uneven_splits, scorer, part, named):
    with pytest.raises(InputError, match=named):
        scorer(*corrupt(task, part), uneven_splits)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"metric": "roc_auc"}, "roc_auc .*two classes.* 4"),
        ({"metric": "acuracy"}, "'acuracy'.*'accuracy'"),
        ({"starts": 0}, "starts is 0"),
        ({"epochs": 0}, "epochs is 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(task, uneven_splits, options, named):
    with pytest.raises(InputError, match=named):
        probe(*task, uneven_splits, **options)


def test_roc_auc_needs_both_classes_where_it_is_measured():
    task, splits = make_task(num_classes=2), make_splits(300, [(60, 50)])
    splits = replace(splits, validation=splits.validation & (task[1] == 1))
    with pytest.raises(InputError, match=r"validation .*split 0 .*one class"):
        probe(*task, splits, metric="roc_auc")
