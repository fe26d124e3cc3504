"""Settings of PPO and of a training run."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

from hopplus.config.auxiliary import (
    PARTS,
    AuxiliaryConfig,
    GoalLearnerConfig,
    ImagineConfig,
    LiamConfig,
    OpponentLearnerConfig,
    PartName,
    WorldLearnerConfig,
    check_parts,
    find_part,
)
from hopplus.config.check import (
    LARGE,
    Between,
    ConfigError,
    Count,
    Positive,
    Settings,
    Share,
    Weight,
    check,
)
from hopplus.config.game import GameConfig
from hopplus.config.games import default_game
from hopplus.config.models import BeliefConfig, MemoryConfig, NetConfig, TraitsConfig, TypesConfig
from hopplus.config.search import DistilConfig, SearchConfig
from hopplus.config.social import InequityConfig, InfluenceConfig, LolaConfig

MIXED = "|"  # between the names of players of whom one sits there, drawn for each trial
MOST_STEPS = 10**12  # of a seed
FOR_EVER = 2**30  # episodes of a trial that never ends
CONTEXT_PARTS = {"goals": "goal", **{name: name for name in ("belief", "traits", "liam")}}
ALONE = ("goals", "liam")  # contexts whose learners know what is remembered, and so of no other


@dataclass(frozen=True)
class PPOConfig(Settings):
    """How a policy improves."""

    prefix: ClassVar[str] = "ppo."
    games: Count = 256
    """Games side by side."""
    unroll: Count = 16
    """Steps of each game between updates."""
    epochs: Count = 4
    """Passes over the steps of an update."""
    minibatches: Count = 4
    """Minibatches of a pass, one gradient step each."""
    learning_rate: Positive = 1e-3
    """Learning rate of Adam."""
    anneal: bool = True
    """Let the learning rate fall to zero over the run."""
    clip: Positive = 0.2
    """Clip range of the policy's probability ratio."""
    value_clip: Positive = 1.0
    """Clip range of values."""
    value_weight: Weight = 0.5
    """Weight of the value loss."""
    entropy: Weight = 0.05
    """Weight of the entropy bonus at the beginning."""
    entropy_end: Annotated[float | None, Between(0, LARGE)] = 0.003
    """Weight of the entropy bonus at the end, reached linearly; as at the beginning when None."""
    gradient_norm: Positive = 0.5
    """Largest norm of a gradient."""
    discount: Share = 1.0
    """Discount per step; below 1, near hares beat far stags on large boards."""
    trial_discount: Share = 0.0
    """Discount per episode of a trial: above 0, returns and values run on
    over the episodes of a trial, and the policy is told which of them it is in. At 0 each episode
    is played for itself."""
    gae_lambda: Share = 0.95
    """GAE's lambda; 1 is the Monte-Carlo return."""
    episodes: Literal["any", "whole"] = "any"
    """Learn from any step, with the value at the end of an unroll for what comes after it; or from
    those alone that were played to the end, of the episode or of what the seat gains in it."""
    prosociality: Share = 0.0
    """Share of everyone's mean reward in a seat's own, from 0 to 1."""
    inequity: InequityConfig = field(default_factory=InequityConfig)
    influence: InfluenceConfig = field(default_factory=InfluenceConfig)
    lola: LolaConfig = field(default_factory=LolaConfig)
    parameters: Literal["independent", "shared"] = "independent"
    """One set of parameters per seat, or one for all."""
    gradient: Literal["auto", "fused", "plain"] = "auto"
    """The loss's gradient by one kernel (fused) or by XLA's; auto: fused on a GPU where it fits."""

    def __post_init__(self) -> None:
        super().__post_init__()
        held = self.steps % self.minibatches == 0
        allowed = f"a divisor of --ppo.games times --ppo.unroll, which is {self.steps}"
        check(held, "ppo.minibatches", self.minibatches, allowed)

    @property
    def steps(self) -> int:
        """Environment steps of an update."""
        return self.games * self.unroll

    @property
    def regards_others(self) -> bool:
        """Whether a seat gains or loses by the others' rewards, so also after it has left."""
        return self.prosociality > 0 or self.inequity.alpha > 0 or self.inequity.beta > 0

    @property
    def gains_after_leaving(self) -> bool:
        """Whether a seat that has left gains any more: by others, or in the next episode."""
        return self.regards_others or self.trial_discount > 0

    @property
    def social(self) -> dict[str, float]:
        """The settings by which a seat learns from more than its own rewards, where they do."""
        given = {
            "ppo.prosociality": self.prosociality,
            "ppo.inequity.alpha": self.inequity.alpha,
            "ppo.inequity.beta": self.inequity.beta,
            "ppo.influence.weight": self.influence.weight,
        }
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True)
class TrainConfig(Settings):
    """A whole training run."""

    kind: ClassVar[str] = "training"
    prefix: ClassVar[str] = "--"
    game: GameConfig = field(default_factory=default_game)
    net: NetConfig = field(default_factory=NetConfig)
    last_actions: bool = False
    """Give policy and critic what everyone did last."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    parts: tuple[PartName, ...] = ()
    """Auxiliary models: opponent, goal, belief, traits (these two need opponent), liam, world,
    imagination (needs opponent and world), or module:ROW of your own. Without any, plain PPO."""
    goal: GoalLearnerConfig = field(default_factory=GoalLearnerConfig)
    belief: BeliefConfig = field(default_factory=BeliefConfig)
    traits: TraitsConfig = field(default_factory=TraitsConfig)
    types: TypesConfig = field(default_factory=TypesConfig)
    liam: LiamConfig = field(default_factory=LiamConfig)
    opponent: OpponentLearnerConfig = field(default_factory=OpponentLearnerConfig)
    world: WorldLearnerConfig = field(default_factory=WorldLearnerConfig)
    imagine: ImagineConfig = field(default_factory=ImagineConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    distil: DistilConfig = field(default_factory=DistilConfig)
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    context: str | None = None
    """What a player makes of the others, for its policy and its models of them: a name of the table
    (none, recurrent, goals, belief, traits, types, liam, oracle, episodes, record), one's own as
    module:attribute, or several (oracle+recurrent); if not given, by --memory.kind and --parts."""
    trial: Annotated[int, Between(1, FOR_EVER)] = 1
    """Episodes of a trial, against the same co-players."""
    seats: str | None = None
    """Who sits where: learn, a scripted player or one's own (module:function), a run's (runs/a,
    runs/a@2, runs/a#1~0.5@2: seed, stage, seat) or an exported player; all learn when not given."""
    train_against: Literal["all", "conditional", "population"] | None = None
    """Who is drawn for each trial for all seats but the first, which learns: the game's own (all),
    also those who remember the trial (conditional), or families (population). See list players."""
    held_out: tuple[str, ...] = ()
    """Families of the population that are not met, to be tried among later."""
    co_play: tuple[str, ...] = ()
    """Runs whose players are drawn too, of all stages that they have kept."""
    steps: Annotated[int, Between(1, MOST_STEPS)] = 1_000_000
    """Environment steps of each seed at most; whole updates are played, one at least."""
    seeds: Annotated[int, Between(1, 4096)] = 1
    """Independent runs, side by side in one program."""
    seed: Annotated[int, Between(0, 2**31 - 1)] = 0
    """The first seed; the others follow it."""
    checkpoint_every: Count = 50
    """Updates between checkpoints."""
    keep: Count = 3
    """Checkpoints to keep, besides the best."""
    keep_stages: tuple[Share, ...] = ()
    """Shares of the training after which players are kept, as runs/a~0.5."""
    log: tuple[str, ...] = ()
    """Loggers besides TensorBoard: csv, wandb, mlflow or module:function."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check(isinstance(self.seats, str | None), "--seats", self.seats, "names, with commas")
        if self.held_out and self.train_against != "population":
            raise ConfigError("--held-out leaves families out of --train-against population alone")
        if self.draws and self.seats:
            other = "--train-against" if self.train_against else "--co-play"
            raise ConfigError(f"--seats and {other} both say who sits there: give one")
        check_parts(self.parts)
        self._check_trial_discount()
        planned = bool(self.search.simulations or "imagination" in self.parts)
        self.ppo.lola.check_with(self.ppo, planned)
        self._check_context()
        ppo = self.ppo
        held = "opponent" in self.parts or not ppo.influence.weight
        check(held, "ppo.influence.weight", ppo.influence.weight, "0 without --parts opponent")
        for name, given in ppo.social.items():
            held = not self.search.simulations
            check(held, name, given, "0 with a search, which looks for own rewards")
            held = "imagination" not in self.parts or name == "ppo.prosociality"
            check(held, name, given, "0 with imagination, where rewards alone are known")
        if self.search.simulations:
            held = "imagination" not in self.parts
            check(held, "--parts", self.parts, "without imagination where a search is learned from")
            self.distil.check_with(self.search)
        elif self.distil != DistilConfig():
            raise ConfigError("--distil options are given without --search.simulations")
        if "goal" in self.parts:
            check(ppo.unroll >= 2, "ppo.unroll", ppo.unroll, "2 or more with the goal part")
            held = self.goal.foresight == 0 or "opponent" in self.parts
            check(held, "goal.foresight", self.goal.foresight, "0 without the opponent part")
        if "imagination" in self.parts:
            imagine = self.imagine
            held = imagine.critic_weight == 1 or imagine.critic_on == "both"
            allowed = "1 where --imagine.critic-on is real: no imagined step is weighed then"
            check(held, "imagine.critic_weight", imagine.critic_weight, allowed)
            held = imagine.goals == "inferred" or self.context_names == ("goals",)
            check(held, "imagine.goals", imagine.goals, "inferred without --parts goal")

    def _check_trial_discount(self) -> None:
        given = self.ppo.trial_discount

        def check_here(held: bool, allowed: str) -> None:
            check(held or given == 0, "ppo.trial_discount", given, allowed)

        check_here(1 < self.stays < FOR_EVER, "0 without trials: give --trial")
        planned = self.search.simulations or "imagination" in self.parts
        check_here(not planned, "0 with a search or imagination, which end with the episode")
        check_here(self.ppo.episodes == "any", "0 with --ppo.episodes whole")
        for part, across in {"goal": self.goal.across, "liam": self.liam.across}.items():
            held = across or part not in self.parts
            check_here(held, f"0 with what {part} forgets: give --{part}.across")

    def _check_context(self) -> None:
        """That there is one answer to what a player makes of the others."""
        held = self.context is None or (isinstance(self.context, str) and self.context != "")
        check(held, "--context", self.context, "a name, or module:attribute")
        asked, names = self._contexts_asked, self.context_names
        if len(asked.keys() - (set(names) if self.context else ())) > 1:
            rest = " ".join(part for part in self.parts if part not in CONTEXT_PARTS.values())
            raise ConfigError(
                f"{' and '.join(asked.values())} each say what a player makes of the others: give"
                f" one, such as --parts {rest or 'with neither'}, or join them by --context"
            )
        if self.context and (left := asked.keys() - set(names)):
            said = asked[min(left)]
            raise ConfigError(f"--context is {self.context} but {said} is given too: leave one out")
        needs = {"recurrent": "--memory.kind"}
        needs |= {context: f"--parts {part}" for context, part in CONTEXT_PARTS.items()}
        for name in names:
            if name in needs and name not in asked:
                raise ConfigError(f"--context {name} needs {needs[name]}")
            if name in ALONE and len(names) > 1:
                raise ConfigError(f"--context is {self.context}: {name} is not joined with others")
        if "episodes" in names and not 1 < self.stays < FOR_EVER:
            raise ConfigError("--context episodes needs trials: --trial 2 or more")
        if "oracle" in names and not (self.draws or MIXED in (self.seats or "")):
            raise ConfigError("--context oracle needs others to be drawn: --train-against all, say")
        if self.memory.kind == "none":
            return
        held = self.ppo.minibatches <= self.ppo.games
        check(held, "ppo.minibatches", self.ppo.minibatches, "at most --ppo.games with a memory")
        if self.memory.kind == "trial" and self.trial < 2:
            raise ConfigError("--memory.kind trial needs trials: --trial 2 or more")

    @property
    def _contexts_asked(self) -> dict[str, str]:
        """The contexts that options other than --context ask for, with the words that do."""
        asked = {c: f"--parts {part}" for c, part in CONTEXT_PARTS.items() if part in self.parts}
        if self.memory.kind == "none":
            return asked
        return {"recurrent": f"--memory.kind {self.memory.kind}", **asked}

    @property
    def context_names(self) -> tuple[str, ...]:
        """Of what a player makes of the others, in the table of contexts."""
        asked = self.context or next(iter(self._contexts_asked), "none")
        names = dict.fromkeys(asked.split("+"))
        # What those remember goes on from episode to episode.
        if self.ppo.trial_discount and not names.keys() & set(ALONE):
            names["episodes"] = None
        return tuple(name for name in names if name != "none" or len(names) == 1)

    @property
    def stays(self) -> int:
        """Episodes for which the others stay the same: those of a trial, or all if nobody is
        drawn."""
        drawn = self.draws or MIXED in (self.seats or "") or self.trial > 1
        return self.trial if drawn else FOR_EVER

    @property
    def draws(self) -> bool:
        """Whether options other than --seats say who is drawn for the others' seats."""
        return bool(self.train_against or self.co_play)

    @property
    def steady(self) -> "TrainConfig":
        """The same with step sizes that do not fall, for who goes on where a run has ended."""
        parts: dict[str, Any] = {
            name: replace(part, anneal=False)
            for name, part in self.fitted.items()
            if not find_part(name).model  # of one's own it goes by --ppo.anneal
        }
        return replace(self, ppo=replace(self.ppo, anneal=False), **parts)

    def without(self, *parts: PartName) -> "TrainConfig":
        """The same without some parts, and without what they were to begin from. Where nothing is
        imagined any more, values weigh as usual: all steps are real then."""
        kept = tuple(part for part in self.parts if part not in parts)
        changes: dict[str, Any] = {
            name: replace(settings, from_run=None)
            for name, settings in self.fitted.items()
            if name in parts and not find_part(name).model
        }
        names = (self.context or "").split("+")
        changes["context"] = "+".join(n for n in names if CONTEXT_PARTS.get(n) not in parts) or None
        ppo = self.ppo
        if self.imagines and "imagination" in parts:
            ppo = replace(ppo, value_weight=PPOConfig().value_weight)
        if "opponent" in parts:  # by whose models it is told
            ppo = replace(ppo, influence=replace(ppo.influence, weight=0.0))
        changes["ppo"] = ppo
        return replace(self, parts=kept, **changes)

    @property
    def imagines(self) -> bool:
        """Whether anything is imagined in this run."""
        return "imagination" in self.parts and self.imagine.least_real_ratio < 1

    @property
    def fitted(self) -> dict[str, AuxiliaryConfig]:
        """The settings of those auxiliary models that are fitted, by name."""
        # In the table's order, whatever that of --parts: each model has its own random numbers.
        found: dict[str, AuxiliaryConfig] = {}
        for name in [*(name for name in PARTS if name in self.parts), *self.parts]:
            settings = find_part(name).settings
            if isinstance(settings, AuxiliaryConfig):
                found[name] = replace(settings, anneal=settings.anneal and self.ppo.anneal)
            elif isinstance(own := getattr(self, settings), AuxiliaryConfig):
                found[name] = own
        return found

    @property
    def updates(self) -> int:
        return max(1, self.steps // self.ppo.steps)

    @property
    def seed_numbers(self) -> range:
        """The seeds by their own numbers, as tables show them."""
        return range(self.seed, self.seed + self.seeds)
