"""Players whose adaptation is diagnosed: those of all seeds learn side by side, once, and faults
are built in afterwards."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.training import run_in
from hopplus.api.training import train_to_end
from hopplus.cli.diagnose.adaptation import TIMES, DiagnoseAdaptation
from hopplus.config import GameConfig, TrainConfig
from hopplus.diagnosis.adaptation import diagnose_adaptation
from hopplus.diagnosis.finding import Verdict
from hopplus.diagnosis.introspection import introspect
from hopplus.diagnosis.player_faults import build_in
from hopplus.games import make_game
from hopplus.learning.from_run import players_by_seed
from hopplus.presets import FORETOLD, PRESETS
from hopplus.runs.executor import Task
from hopplus.runs.folder import open_run

SEATS = 3  # the fewest in which what is inferred of one other can be mistaken for another's
SEAT = 0  # which learns


@dataclass(frozen=True)
class Players:
    """A preset's players in trials among all kinds of co-players, one of each seed."""

    preset: str
    game: GameConfig
    steps: int
    seed: int
    seeds: int
    runs: Path

    @property
    def config(self) -> TrainConfig:
        """With models of the others as goal-trial has them: those that have learned less hardly
        listen to what is inferred, so that it makes no difference whose that is."""
        made = PRESETS[self.preset]
        return replace(
            made,
            game=self.game,
            steps=self.steps,
            seed=self.seed,
            seeds=self.seeds,
            ppo=replace(made.ppo, unroll=32),
            opponent=FORETOLD,
            train_against="all",
            trial=5,
        )

    @property
    def path(self) -> Path:
        return self.runs / f"players-{self.preset}-{self.seed}-{self.seeds}"

    def task(self) -> Task:
        """Their training, for an executor."""
        run = run_in(self.path, self.config)
        return Task(f"players of {self.preset}", (run,), train_to_end)

    def diagnosis(self, fault: str | None, trials: int) -> Callable[[int], Verdict]:
        """The verdict on the player of a seed, as the command has it but for the seed of play."""
        found = players_by_seed(open_run(self.path), self.config.seed_numbers)
        actor = build_in(fault, found[self.seed][SEAT].actor)  # one for all: compiled once
        game, episodes = make_game(self.game), DiagnoseAdaptation.episodes
        times = [time for time in TIMES if time < game.horizon]

        def diagnose(seed: int) -> Verdict:
            player = replace(found[seed][SEAT], actor=actor)
            seen = introspect(game, player, SEAT, episodes, trials, times, seed)
            return diagnose_adaptation(self.preset, [seen]).verdict

        return diagnose
