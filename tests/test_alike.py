"""In a share of trials one co-player is drawn for all seats of a mixture."""

import jax
import numpy as np
import pytest

from hopplus.config import ConfigError, TrainConfig
from hopplus.learning.from_run import make_learner
from hopplus.play.lineup import make_lineup
from test_population import small


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_the_share_of_trials(share: float) -> None:
    game = small("stag-hunt-v1")
    mixed = "stag|hare|random|switch"
    seating = make_lineup(["random", mixed, mixed], game, {}, trial=3, alike=share).seating
    keys = jax.random.split(jax.random.key(0), (4000, 3))
    drawn = np.asarray(jax.vmap(seating.draw)(keys))
    expected = share + (1 - share) / 4  # a quarter of the others are alike by chance
    assert (drawn[:, 1] == drawn[:, 2]).mean() == pytest.approx(expected, abs=0.03)
    shares = np.bincount(drawn[:, 2], minlength=4) / len(drawn)
    np.testing.assert_allclose(shares, 0.25, atol=0.03)  # whoever is as likely as ever


def test_a_run_says_so() -> None:
    config = TrainConfig(train_against="all", alike=0.5, trial=2)
    learner = make_learner(config, {})
    assert learner.seating.alike == 0.5
    with pytest.raises(ConfigError, match="alike"):
        TrainConfig(alike=0.5)
