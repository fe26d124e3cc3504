"""The figures of a diagnosis, against scikit-learn's and against numbers worked by hand."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    confusion_matrix,
    log_loss,
    precision_recall_fscore_support,
    roc_auc_score,
    top_k_accuracy_score,
)

from hopplus.cli.diagnose.models import save_measures
from hopplus.diagnosis.finding import to_json
from hopplus.diagnosis.models.classes import (
    area_under_curve,
    bin_calibration,
    calibration_error,
    count_confusions,
    cross_entropy,
    describe_classes,
    mean_area,
    score_top,
)
from hopplus.diagnosis.models.measures import Measures
from hopplus.diagnosis.models.observers import Observer
from hopplus.diagnosis.models.opponent import describe_predictions
from hopplus.diagnosis.models.world import psnr
from hopplus.diagnosis.probe import PENALTY, fit_probe, project
from hopplus.report.figures import models as figures_of_models

CLASSES = 7


def predictions(seed: int, count: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    """[M, A] log-probabilities that know something of the [M] truth."""
    dice = np.random.default_rng(seed)
    truth = dice.choice(CLASSES, count, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1, 0.0])
    logits = dice.normal(size=(count, CLASSES)) + 1.5 * np.eye(CLASSES)[truth]
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)), truth


@pytest.mark.parametrize("seed", [0, 1])
def test_classes_agree_with_scikit_learn(seed: int) -> None:
    log_probs, truth = predictions(seed)
    first, labels = log_probs.argmax(axis=1), np.arange(CLASSES)
    figures = describe_predictions(log_probs, truth, list("abcdefg"), {})
    expected = confusion_matrix(truth, first, labels=labels)
    np.testing.assert_array_equal(figures["confusion"], expected)
    np.testing.assert_array_equal(count_confusions(truth, first, CLASSES), expected)
    by_class = precision_recall_fscore_support(truth, first, labels=labels, zero_division=0)
    for name, values in zip(("precision", "recall", "f1", "count"), by_class, strict=True):
        np.testing.assert_allclose([row[name] for row in figures["classes"]], values)
    np.testing.assert_allclose(
        [row["share"] for row in figures["classes"]], np.bincount(truth, minlength=7) / len(truth)
    )
    for name, k in (("top1", 1), ("top3", 3)):
        right = top_k_accuracy_score(truth, log_probs, k=k, labels=labels)
        assert figures[name] == score_top(log_probs, truth, k) == pytest.approx(right)
    loss = log_loss(truth, np.exp(log_probs), labels=labels)
    assert figures["cross_entropy"] == cross_entropy(log_probs, truth) == pytest.approx(loss)


def test_calibration_agrees_with_scikit_learn() -> None:
    dice = np.random.default_rng(2)
    probability = dice.uniform(size=5000)
    happened = dice.uniform(size=5000) < probability**2
    rows = bin_calibration(probability, happened)
    expected = calibration_curve(happened, probability, n_bins=10)
    np.testing.assert_allclose([row["happened"] for row in rows], expected[0])
    np.testing.assert_allclose([row["predicted"] for row in rows], expected[1])
    assert sum(row["count"] for row in rows) == 5000
    by_hand = bin_calibration(np.array([0.05, 0.95, 0.95, 1.0]), np.array([1, 1, 0, 1]), bins=2)
    assert [row["count"] for row in by_hand] == [1, 3]
    assert calibration_error(by_hand) == pytest.approx(0.25 * 0.95 + 0.75 * (2.9 / 3 - 2 / 3))


def test_what_is_impossible_is_never_among_the_likeliest() -> None:
    log_probs = np.log(np.array([[0.5, 0.5, 1e-300], [0.5, 0.5, 1e-300]]))
    log_probs[:, 2] = -np.inf
    assert score_top(log_probs, np.array([0, 2]), 3) == 0.5


@pytest.mark.parametrize("seed", [0, 1])
def test_area_under_the_curve_agrees_with_scikit_learn(seed: int) -> None:
    dice = np.random.default_rng(seed)
    positive = dice.uniform(size=400) < 0.3
    score = np.round(dice.normal(size=400) + positive, 1)  # with ties
    right = roc_auc_score(positive, score)
    assert area_under_curve(score, positive) == pytest.approx([right])
    assert np.isnan(area_under_curve(score, np.ones(400, bool))).all()
    counts = dice.integers(0, 3, (2, 400))
    right = [roc_auc_score(positive, score, sample_weight=weight) for weight in counts]
    assert area_under_curve(score, positive, counts) == pytest.approx(right)
    log_probs, truth = predictions(seed)
    present = np.unique(truth)
    odds = log_probs - np.log1p(-np.exp(log_probs))
    right = np.mean([roc_auc_score(truth == number, odds[:, number]) for number in present])
    all_alike, once = np.zeros(len(truth)), np.ones((1, len(truth)))
    assert mean_area(log_probs, truth, all_alike, once) == pytest.approx([right])


def test_areas_compare_only_within_a_stratum() -> None:
    """A score that tells nothing but the stratum is worth nothing."""
    dice = np.random.default_rng(5)
    time = dice.integers(0, 4, 2000)
    truth = (dice.uniform(size=2000) < time / 4).astype(int)
    scores = np.stack([-time, time], axis=1) + dice.normal(size=(2000, 2)) * 1e-3
    log_probs = scores - np.logaddexp.reduce(scores, axis=1)[:, None]
    once = np.ones((1, 2000))
    assert mean_area(log_probs, truth, np.zeros(2000), once)[0] > 0.7
    assert mean_area(log_probs, truth, time, once)[0] == pytest.approx(0.5, abs=0.05)
    # Pairs within strata, by hand: 1 of 2 in the first, 1 of 1 in the second.
    score = np.log([[0.5, 0.5], [0.4, 0.6], [0.3, 0.7], [0.9, 0.1], [0.8, 0.2]])
    strata = np.array([0, 0, 0, 1, 1])
    won = mean_area(score, np.array([1, 0, 1, 0, 1]), strata, np.ones((1, 5)))
    assert won == pytest.approx([2 / 3])


def test_the_probe_is_logistic_regression() -> None:
    """With every class weighing the same and the same penalty, scikit-learn finds the same one."""
    dice = np.random.default_rng(3)
    labels = dice.choice(3, 600, p=[0.6, 0.3, 0.1])
    codes = dice.normal(size=(600, 4)) * [1, 5, 0.1, 2] + np.eye(3, 4)[labels] * [1, 2, 0.2, 0]
    probe = fit_probe(codes, labels, 3)
    # Its loss adds samples up with a mean weight of 1, and halves the squares.
    theirs = LogisticRegression(C=1 / (2 * PENALTY * 600), class_weight="balanced", max_iter=5000)
    scaled = (codes - codes.mean(axis=0)) / codes.std(axis=0)
    theirs.fit(scaled, labels)
    expected = theirs.predict_log_proba(scaled)
    np.testing.assert_allclose(probe.log_probs(codes), expected, atol=0.01)
    assert (probe.read(codes) == theirs.predict(scaled)).mean() > 0.995


def test_the_projection_is_that_of_the_main_components() -> None:
    codes = np.random.default_rng(4).normal(size=(200, 5)) * [3, 2, 1, 0.5, 0.1]
    points, shares = project(codes)
    theirs = PCA(2).fit(codes)
    np.testing.assert_allclose(np.abs(points), np.abs(theirs.transform(codes)), atol=1e-8)
    np.testing.assert_allclose(shares, theirs.explained_variance_ratio_)


def test_decibels_by_hand() -> None:
    assert psnr(0.01) == pytest.approx(20)
    assert psnr(0.0074) == pytest.approx(21.3, abs=0.05)
    assert psnr(1e-5) == pytest.approx(50)
    assert psnr(0.0) == pytest.approx(120)


def test_class_figures_by_hand() -> None:
    rows = describe_classes(np.array([[3, 1, 0], [2, 2, 0], [0, 0, 0]]), "abc")
    assert [row["action"] for row in rows] == ["a", "b", "c"]
    expected = {
        "precision": [3 / 5, 2 / 3, 0],
        "recall": [3 / 4, 1 / 2, 0],
        "f1": [2 / 3, 4 / 7, 0],
    }
    for name, values in expected.items():
        assert [row[name] for row in rows] == pytest.approx(values)


def test_what_is_no_number_is_null() -> None:
    tree = {"a": [1.0, float("nan"), {"b": float("inf")}], "c": "text", "d": None, "e": 3}
    assert to_json(tree) == {"a": [1.0, None, {"b": None}], "c": "text", "d": None, "e": 3}


def test_the_share_of_the_best_is_of_what_is_expected_of_one_not_told() -> None:
    """Three steps of even chances, predicted by luck: luck does not count."""
    truth = np.array([[0.5, 0.5], [0.5, 0.5], [0.0, 1.0]])
    told, watching = truth, np.array([[0.6, 0.4], [0.6, 0.4], [0.3, 0.7]])
    guessing = np.array([[0.6, 0.4]] * 3)
    observers = {
        "oracle": Observer(told, truth),
        "watching": Observer(watching, truth),
        "guessing": Observer(guessing, truth),
    }
    log_probs = np.log(np.array([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1]]))
    figures = describe_predictions(log_probs, np.array([0, 1, 1]), ["a", "b"], observers)
    assert figures["top1"] == pytest.approx(2 / 3)
    assert figures["expected_top1"] == pytest.approx(1 / 3)
    assert figures["share_of_best"] == pytest.approx((1 / 3) / (2 / 3))
    recalls = [row["best_recall"] for row in figures["classes"]]
    assert recalls == pytest.approx([1.0, 0.5])
    assert figures["never_predicted"] == []
    only_a = np.log(np.array([[0.9, 0.1]] * 3))
    missed = describe_predictions(only_a, np.array([0, 1, 1]), ["a", "b"], observers)
    assert missed["never_predicted"] == ["b"]


def test_a_picture_that_fails_takes_nothing_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither the figures nor the pictures after it."""

    class Drawn:
        def __init__(self, measures: Measures) -> None:
            assert measures is measured

        def savefig(self, path: Path, dpi: int) -> None:
            path.write_text("drawn")

    def fails(measures: Measures) -> Any:
        raise ValueError("inhomogeneous shape")

    monkeypatch.setattr(figures_of_models, "DRAWN", {"world": {"one": fails, "two": Drawn}})
    measured = Measures("world", {"a": 1.5}, {"table": [{"x": 1}]})
    save_measures(tmp_path, {0: measured})
    said = "one.png is left out: it cannot be drawn (ValueError: inhomogeneous shape)"
    assert said in capsys.readouterr().err
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"measures.json", "table.csv", "two.png"}


def test_without_matplotlib_the_figures_are_still_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def draw(measures: Measures) -> Any:
        import matplotlib.figure

        return matplotlib.figure.Figure()

    monkeypatch.setattr(figures_of_models, "DRAWN", {"world": {"one": draw, "two": draw}})
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    measured = Measures("world", {"a": 1.5}, {"table": [{"x": 1}]})
    save_measures(tmp_path / "out", {7: measured, 8: measured})
    assert capsys.readouterr().err.count("matplotlib is not installed") == 1  # said once
    written = json.loads((tmp_path / "out" / "measures.json").read_text())
    assert written == {"kind": "world", "seeds": {"7": {"a": 1.5}, "8": {"a": 1.5}}}
    assert (tmp_path / "out" / "table.csv").read_text() == "seed,x\n7,1\n8,1\n"
    assert len(list((tmp_path / "out").iterdir())) == 2
