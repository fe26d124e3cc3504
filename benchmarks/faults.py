"""Does each diagnosis name what is wrong? Faults built in, over many seeds, and none built in, held
against the counts kept in faults.json. A diagnosis that is done is not made again, unless the code
or a threshold of the diagnosis has changed since."""

import hashlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from benchmarks import main
from benchmarks.kept import Figures, find_figures, keep_figures, read_figures
from benchmarks.players import SEATS, Players
from hopplus import diagnosis
from hopplus.cli.paged import show
from hopplus.cli.reading.options import check_options
from hopplus.cli.studies.engine import Engine, TrainedBy
from hopplus.config import MANY, ConfigError, GameConfig, check_range, default_game
from hopplus.diagnosis.adaptation import ENOUGH_TRIALS
from hopplus.diagnosis.faults import FAULTS, Fault, find_fault
from hopplus.diagnosis.finding import HEALTHY, NOT_KNOWN, Verdict, read_illnesses
from hopplus.diagnosis.player_faults import PLAYER_FAULTS
from hopplus.diagnosis.seats.checks import SeatsSettings, diagnose_seats
from hopplus.diagnosis.subject import OnStep, make_laboratory, train_subject
from hopplus.diagnosis.value_loss.diagnosis import diagnose_value_loss
from hopplus.diagnosis.value_loss.experiments import REPLICAS
from hopplus.presets import PRESETS
from hopplus.report.page import Column, Page, Section, make_table
from hopplus.runs.checkpoint import write_durably
from hopplus.runs.folder import RunError
from hopplus.runs.progress import Progress
from hopplus.runs.watchdog import say
from hopplus.runtime import device_line

NONE = "none"
KEPT = Path(__file__).with_name("faults.json")
CODE = Path(diagnosis.__path__[0])  # by which verdicts are found: faults, checks and thresholds
DOCS = Path(__file__).parents[1] / "docs" / "diagnosis.md"  # shows what is kept
MARK = "<!-- benchmarks/faults.json -->"  # above and below the table there
ENOUGH = 0.95  # of the diagnoses of a fault should name it
PLAIN, WHOLE = "ppo", "hop-plus"  # faults are built into plain PPO, or where there are all parts
COMMANDS = ("seats", "value-loss", "adaptation")
NO_FAULT = "no fault reaches it"


@dataclass(frozen=True)
class Case:
    """A diagnosis of a preset into which a fault is built, or none."""

    command: str
    preset: str
    fault: str

    @property
    def expected(self) -> str:
        if (self.command, self.preset) == ("adaptation", PLAIN):
            return "no-inference"  # by what it is, and for no fault
        return expected_of(self.command, self.fault) or HEALTHY

    @property
    def name(self) -> str:
        return f"{self.command} {self.preset} {self.fault}"


@dataclass(frozen=True)
class Trials:
    """How often a diagnosis said what in one case, and how often it did when that was kept."""

    case: Case
    said: dict[str, int]
    seconds: float  # of one diagnosis, after the first
    kept: dict[str, int] | None  # None of a case that is not kept, or kept with other settings

    @property
    def right(self) -> int:
        return self.said.get(self.case.expected, 0)

    @property
    def count(self) -> int:
        return sum(self.said.values())

    @property
    def verdict(self) -> str:
        """Whether it is right less often than it was, and than it should be."""
        if self.kept is None:
            return "not kept"
        before = self.kept.get(self.case.expected, 0) / sum(self.kept.values())
        return "LOWER" if self.right / self.count < min(before, ENOUGH) else "as kept"

    @property
    def others(self) -> str:
        return ", ".join(
            f"{name} {n}" for name, n in self.said.items() if name != self.case.expected
        )

    def as_json(self) -> dict[str, Any]:
        case, own = vars(self.case) | {"expected": self.case.expected}, dict(vars(self))
        del own["case"]
        return case | own | {"right": self.right, "count": self.count, "verdict": self.verdict}


COLUMNS: dict[str | Column, Any] = {
    "diagnose": lambda one: one.case.command,
    "preset": lambda one: one.case.preset,
    Column("fault", words=True): lambda one: one.case.fault,
    "should say": lambda one: one.case.expected,
    "said so": lambda one: f"{one.right}/{one.count}",
    "also said": lambda one: one.others,
    "verdict": lambda one: one.verdict,
    Column("seconds each", ".1f"): lambda one: one.seconds,
}


@dataclass(frozen=True)
class FaultBench:
    """Build every fault in, over many seeds, and count how often each diagnosis names it; with the
    settings of `hopplus diagnose ... --quick`."""

    seeds: int = 20
    """Diagnoses of each fault, no two with a seed in common."""
    seed: int = 30_000
    """The first seed; nothing is tuned on those from the default on."""
    faults: tuple[str, ...] = ()
    """Which faults; none is the run without any. All when not given."""
    commands: tuple[str, ...] = COMMANDS
    """By which diagnoses."""
    healthy: tuple[str, ...] = ("ppo", "ppo-shared", "hop-plus")
    """Presets that are diagnosed without a fault."""
    runs_each: int = 5
    """Runs side by side in a diagnosis of seats."""
    steps: int = 40_000
    """Environment steps of each run."""
    players: tuple[str, ...] = ("belief",)
    """Presets whose players' adaptation is diagnosed, with each fault of a player and without;
    besides plain PPO, which infers nothing. They learn in a game of three seats."""
    player_steps: int = 500_000
    """Environment steps of each player's training."""
    trials_each: int = ENOUGH_TRIALS
    """Trials of a diagnosis of adaptation."""
    episodes: int = 10_000
    """Episodes for each kind of player that the game is tried with."""
    updates: int = 6
    """Updates of each experiment in a diagnosis of the value loss."""
    games: Annotated[int, tyro.conf.arg(name="ppo.games")] = 128
    """Games side by side in a diagnosis of the value loss."""
    game: GameConfig = field(default_factory=default_game)
    runs: Path = Path("runs/faults")
    """Where finished diagnoses are; several processes may fill it, each with faults of its own."""
    trained_by: TrainedBy = field(default_factory=Engine)  # players; other runs have no folders
    keep: bool = False
    """Write what was counted into benchmarks/faults.json, and its table into docs/diagnosis.md."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_options(seeds=self.seeds, seed=self.seed, steps=self.steps)
        check_options(episodes=self.episodes, updates=self.updates, **{"runs-each": self.runs_each})
        check_options(**{"player-steps": self.player_steps, "trials-each": self.trials_each})
        check_range("ppo.games", self.games, 1, MANY)
        for kind, given, allowed in (
            ("preset", self.healthy + self.players, tuple(PRESETS)),
            ("fault", self.faults, (NONE, *FAULTS, *PLAYER_FAULTS)),
            ("diagnosis", self.commands, COMMANDS),
        ):
            if wrong := [name for name in given if name not in allowed]:
                raise ConfigError(f"no {kind} {wrong[0]!r}; there are {', '.join(allowed)}")
        watched = dict.fromkeys(one.preset for one in self.cases if one.command == "adaptation")
        executor = self.trained_by.make()
        try:
            failed = executor.execute([self._players(preset).task() for preset in watched])
        except KeyboardInterrupt:
            say("stopped; go on with the same command")
            return 130
        if failed:
            raise RunError(failed[0].why)
        total, busy = len(self.cases) * self.seeds, "busy with the first"
        with Progress("diagnosing", total, "diagnoses", first=busy) as progress:
            found = list(self.trials(lambda note: progress.advance(1, note)))
        if self.keep:
            settings = {name: self._settings(name) | self._seeds for name in self.commands}
            now = {one.case.name: settings[one.case.command] | {"said": one.said} for one in found}
            keep_figures(KEPT, now)
            above, _, below = DOCS.read_text(encoding="utf-8").split(MARK)
            table = f"{MARK}\n{tabulate_kept()}\n{MARK}"
            write_durably(DOCS, f"{above}{table}{below}".encode())
        machine = device_line()
        title = f"{self.seeds} diagnoses each, seeds from {self.seed:,} on; {machine}"
        reached = [
            {"diagnose": command, "verdict": verdict, "faults": names}
            for command, verdict, names in list_verdicts()
        ]
        rows = [[row["diagnose"], row["verdict"], row["faults"] or NO_FAULT] for row in reached]
        header: list[str | Column] = ["diagnose", "verdict", Column("reached by", words=True)]
        page = Page(
            "faults",
            "",
            sections=[
                make_table(title, COLUMNS, found),
                Section("Every verdict that exists", header=header, rows=rows),
            ],
            payload={
                "machine": machine,
                "trials": [one.as_json() for one in found],
                "verdicts": reached,
            },
        )
        show(page, as_json=self.json)
        return int(any(one.verdict == "LOWER" for one in found))

    @property
    def cases(self) -> list[Case]:
        """Those that are asked for: healthy ones, and each fault by every command that should name
        it."""
        wanted, found = self.faults or (NONE, *FAULTS, *PLAYER_FAULTS), []
        for command in self.commands:
            adaptation = command == "adaptation"
            if NONE in wanted:
                sound = (PLAIN, *self.players) if adaptation else self.healthy
                found += [Case(command, preset, NONE) for preset in sound]
            for name in wanted:
                if expected_of(command, name):
                    one = self.players if adaptation else (WHOLE if FAULTS[name].needs else PLAIN,)
                    found += [Case(command, preset, name) for preset in one]
        return found

    def trials(self, on_step: OnStep) -> Iterator[Trials]:
        """All cases, one after the other; what is done already is read."""
        for case in self.cases:
            make: Callable[[int], Verdict] | None = None
            file = self.runs / f"{case.name.replace(' ', '-')}.json"
            done: list[Figures] = []
            settings = self._settings(case.command)
            known = settings | {"code": hash_code(CODE)}
            for seed in self.seeds_of(case.command):
                row = find_figures(file, str(seed), known)
                if row is None:
                    make = make or self._diagnosis(case)
                    began = time.monotonic()
                    verdict = make(seed)
                    said = {"said": verdict.name, "also": verdict.also, "why": verdict.evidence}
                    row = {**known, **said, "seconds": time.monotonic() - began}
                    keep_figures(file, {str(seed): row})
                done.append(row)
                on_step(f"{case.name}: {dict(Counter(row['said'] for row in done))}")
            seconds = [row["seconds"] for row in done[1:] or done]
            before = find_figures(KEPT, case.name, settings | self._seeds)
            yield Trials(
                case,
                dict(Counter(row["said"] for row in done)),
                sum(seconds) / len(seconds),
                before and before["said"],
            )

    def seeds_of(self, command: str) -> Sequence[int]:
        """The first seed of each diagnosis, as far apart as it has runs: no seed is used twice."""
        each = {"seats": self.runs_each, "value-loss": REPLICAS, "adaptation": 1}[command]
        return range(self.seed, self.seed + self.seeds * each, each)

    def _settings(self, command: str) -> Figures:
        """What a verdict hangs on besides the case and the seed."""
        names, game = "runs_each steps episodes updates games", self.game
        if command == "adaptation":
            names, game = "player_steps trials_each", self._players(PLAIN).game
        return {name: getattr(self, name) for name in names.split()} | {"game": asdict(game)}

    @property
    def _seeds(self) -> Figures:
        return {"seed": self.seed, "seeds": self.seeds}

    def _diagnosis(self, case: Case) -> Callable[[int], Verdict]:
        """The verdict by the first seed."""
        fault_name = None if case.fault == NONE else case.fault
        if case.command == "adaptation":
            return self._players(case.preset).diagnosis(fault_name, self.trials_each)
        made = PRESETS[case.preset]
        if case.command == "value-loss":
            made = replace(made.steady, ppo=replace(made.steady.ppo, games=self.games))
        config = replace(made, game=self.game, steps=self.steps)
        fault = find_fault(fault_name, config)
        return {"seats": self._seats, "value-loss": self._value_loss}[case.command](
            case, config, fault
        )

    def _players(self, preset: str) -> Players:
        game = replace(self.game, seats=SEATS)
        return Players(preset, game, self.player_steps, self.seed, self.seeds, self.runs)

    def _seats(self, case: Case, config: Any, fault: Fault) -> Callable[[int], Verdict]:
        laboratory = make_laboratory(config, fault, self.runs_each)

        def diagnose(seed: int) -> Verdict:
            settings = SeatsSettings(
                episodes=self.episodes,
                seed=seed,
                ablation_steps=self.steps,
                fewer_rungs=True,
            )
            subject = train_subject(case.preset, laboratory, seed, lambda note: None)
            return diagnose_seats(subject, fault, settings, lambda note: None).verdict

        return diagnose

    def _value_loss(self, case: Case, config: Any, fault: Fault) -> Callable[[int], Verdict]:
        laboratory = make_laboratory(config, fault, REPLICAS)

        def diagnose(seed: int) -> Verdict:
            subject = train_subject(case.preset, laboratory, seed, lambda note: None)
            return diagnose_value_loss(subject, self.updates, lambda note: None).verdict

        return diagnose


def hash_code(folder: Path) -> str:
    """A short hash of all code in a folder, and of the tables beside it."""
    found = hashlib.sha256()
    for file in sorted(file for kind in ("*.py", "*.toml") for file in folder.rglob(kind)):
        found.update(f"{file.relative_to(folder)}\n".encode() + file.read_bytes())
    return found.hexdigest()[:12]


def expected_of(command: str, fault: str) -> str | None:
    """What a diagnosis should say of a fault; None of one that it need not find, and of none."""
    known: dict[str, object] = {**FAULTS, **PLAYER_FAULTS}
    return getattr(known.get(fault), command.replace("-", "_"), None)


def tabulate_kept() -> str:
    """What is kept, as the documents have it; cases that were not counted without a number."""
    kept = {name: row["said"] for name, row in read_figures(KEPT).items()}
    sound = [Case(*name.split()) for name in kept if name.endswith(f" {NONE}")]
    players = [one.preset for one in sound if one.command == "adaptation" and one.preset != PLAIN]
    healthy = dict.fromkeys(one.preset for one in sound if one.command != "adaptation")
    rows: dict[str, dict[str, str]] = {}
    bench = FaultBench()
    for case in replace(
        bench, healthy=tuple(healthy) or bench.healthy, players=tuple(players) or bench.players
    ).cases:
        row = f"none (`{case.preset}`)"
        if case.fault in FAULTS:
            row = f"`{case.fault}`: {FAULTS[case.fault].about}"
        elif case.fault != NONE:
            row = f"`{case.fault}` (`{case.preset}`): {PLAYER_FAULTS[case.fault].about}"
        said, cell = kept.get(case.name), f"`{case.expected}`"
        if said:
            trials = Trials(case, said, 0.0, None)
            cell += f" {trials.right}/{trials.count}" + f" ({trials.others})" * bool(trials.others)
        rows.setdefault(row, {})[case.command] = cell
    lines = [f"| fault built in | {' | '.join(f'`{name}` says' for name in COMMANDS)} |"]
    lines.append("|---" * (1 + len(COMMANDS)) + "|")
    for row, cells in rows.items():
        lines.append(f"| {row} | {' | '.join(cells.get(name, ' ') for name in COMMANDS)} |")
    return "\n".join(lines)


def list_verdicts() -> Iterator[tuple[str, str, str]]:
    """Every illness that a diagnosis knows, and the faults by which it is reached."""
    for command in COMMANDS:
        for verdict in read_illnesses(command):
            if verdict not in (HEALTHY, NOT_KNOWN):
                cases = [Case(command, WHOLE, name) for name in (*FAULTS, *PLAYER_FAULTS)]
                reached = [case.fault for case in cases if case.expected == verdict]
                if Case(command, PLAIN, NONE).expected == verdict:
                    reached.append(f"{PLAIN} without a fault")
                yield command, verdict, ", ".join(reached)


if __name__ == "__main__":
    sys.exit(main(FaultBench))
