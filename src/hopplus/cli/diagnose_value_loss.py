"""`hopplus diagnose value-loss`: why is the value loss large?"""

from dataclasses import dataclass, replace

from hopplus.cli.diagnosed import Diagnosing, finish
from hopplus.cli.options import check_positive
from hopplus.diagnosis.subject import laboratory_of, of_preset, of_run
from hopplus.diagnosis.value_loss import LANES, ValueLossDiagnosis, diagnose_value_loss
from hopplus.presets import PRESETS
from hopplus.report.page import Section
from hopplus.runs.progress import Progress

STEPS, QUICK_STEPS = 100_000, 40_000
UPDATES, QUICK_UPDATES = 20, 6
QUICK_GAMES = 128
CHECKS = 2  # pieces of work besides training and experiments
HEADER = (
    "source",
    "steps",
    "squared error",
    "explained",
    "mean return",
    "variance",
    "rewards",
    "size of goals",
)


@dataclass(frozen=True)
class DiagnoseValueLoss(Diagnosing):
    """Find out why the value loss is large: by source, by seat, over time, by experiment."""

    updates: int | None = None
    """Updates of each experiment; fewer with --quick."""

    def run(self) -> int:
        self._check()
        updates = self.updates or (QUICK_UPDATES if self.quick else UPDATES)
        check_positive(updates=updates)
        if self.subject in PRESETS:
            config, fault = self._preset(QUICK_STEPS if self.quick else STEPS)
            config = config.steady  # experiments go on from where it ends
            if self.quick:
                games = min(config.ppo.games, QUICK_GAMES)
                config = replace(config, ppo=replace(config.ppo, games=games))
            trained = config.updates
        else:
            run, trained = self._run(), 0
            config = run.config()
        total = trained + CHECKS + ("imagination" in config.parts) * updates
        with Progress("diagnosing the value loss", total, "pieces", even=False) as progress:

            def on_step(note: str) -> None:
                progress.advance(1, note)

            if self.subject in PRESETS:
                laboratory = laboratory_of(config, fault, LANES)
                subject = of_preset(self.subject, laboratory, self.seed, on_step)
            else:
                subject = of_run(run, LANES, steady=True)
            found = diagnose_value_loss(subject, updates, on_step)
        finish(
            "value-loss",
            self._folder() / "value-loss.html",
            found.verdict,
            found.checks,
            found.as_json(),
            lambda: _sections(found),
            self.json,
        )
        return 0


def _sections(found: ValueLossDiagnosis) -> list[Section]:
    from hopplus.diagnosis.value_loss_picture import (
        experiments_picture,
        seat_rows,
        sources_picture,
        time_picture,
    )

    sections = [Section("Over time", pictures=[("over time", time_picture(found))])]
    if found.trials:
        rows = [
            [
                trial.name,
                f"{trial.final:.3g}",
                f"{trial.imagined_loss[-1]:.3g}" if any(trial.imagined_loss) else "not learned",
                f"{trial.explained[-1]:.2f}",
                f"{trial.returns[-1]:.2f}",
            ]
            for trial in found.trials
        ]
        header = ("experiment", "value loss", "of imagined steps", "explained", "mean return")
        pictures = [("experiments", experiments_picture(found))]
        sections.append(
            Section(
                "Experiments from the same checkpoint", pictures=pictures, header=header, rows=rows
            )
        )
    sections.append(
        Section(
            "What values learn from, by source and seat",
            pictures=[("distributions", sources_picture(found))],
            header=HEADER,
            rows=seat_rows(found),
        )
    )
    return sections
