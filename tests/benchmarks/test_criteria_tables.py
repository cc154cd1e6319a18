"""Criteria of vectors without labels: known values, and how their choices are judged."""

import criteria
import criteria_tables
import numpy as np
import pytest
from markdown import NO_RESULTS


def lines(values, scores):
    return [
        {"dataset": "cora", "setting": name, "validation": score, "criteria": {"spread": value}}
        for (name, score), value in zip(scores.items(), values, strict=True)
    ]


def test_a_criterion_is_judged_by_rank_and_by_what_its_choice_costs():
    scores = {"auto": 80.0, "raw": 60.0, "dgi": 82.0}
    assert criteria_tables.judged(lines([0.5, 0.1, 0.9], scores), "spread") == (pytest.approx(1), 0)
    assert criteria_tables.judged(lines([0.5, 0.9, 0.1], scores), "spread") == (pytest.approx(-1), 22)
    assert criteria_tables.judged(lines([0.5, 0.5, None], scores), "spread") == (0, 0)
    text = criteria_tables.criteria_table(lines([0.5, 0.9, 0.1], scores))
    assert "| spread | -1.00 / 22.0 | -1.00 / 22.0 |" in text
    assert "| auto, always | - / 2.0 | - / 2.0 |" in text
    assert criteria_tables.criteria_table([]) == NO_RESULTS


def test_collapsed_vectors_have_rank_1():
    generator = np.random.default_rng(0)
    collapsed = np.ones((50, 8), np.float32) * generator.uniform(1, 2, (50, 1)).astype(np.float32)
    assert criteria.effective_rank(collapsed) == pytest.approx(1, abs=1e-3)
    orthogonal = np.eye(8, dtype=np.float32)
    assert criteria.effective_rank(orthogonal) == pytest.approx(8, abs=1e-3)


def test_agreement_is_1_for_rotated_vectors_and_0_for_unrelated_ones():
    generator = np.random.default_rng(0)
    one, other = generator.normal(size=(2, 800, 6)).astype(np.float32)
    rotation = np.linalg.qr(generator.normal(size=(6, 6))).Q.astype(np.float32)
    assert criteria.agreement(one, one @ rotation) == pytest.approx(1, abs=1e-5)
    assert criteria.agreement(one, other) == pytest.approx(0, abs=0.02)
