"""Named experiments: configurations, and nothing else."""

from dataclasses import replace

from hopplus.config import (
    LARGE,
    BeliefConfig,
    CoinConfig,
    DistilConfig,
    GoalConfig,
    GoalLearnerConfig,
    ImagineConfig,
    InequityConfig,
    InfluenceConfig,
    LiamConfig,
    LolaConfig,
    MemoryConfig,
    NetConfig,
    OpponentLearnerConfig,
    PartName,
    PPOConfig,
    SearchConfig,
    TrainConfig,
    WorldConfig,
    WorldLearnerConfig,
)
from hopplus.registry import Registry

# One small tree is enough to learn from: three of 50 take more than an hour on two cores. Its own
# value is the value's target: with what came of a step as the target one seed of five ends at 2.74.
SEARCH = SearchConfig(trees=1, simulations=16, noise=0.25, temperature=1.0)
ROOT_VALUES = DistilConfig(value_target="search")
ONE_STEP = SearchConfig(
    kind="one-step", world="learned", trees=1, simulations=16, choice="values", temperature=0.1
)
# Goals that last for a trial: what they are for is to foresee what each other does. Their meaning
# settles as the run goes on, so that a policy can rely on it.
FORESEEING = GoalLearnerConfig(
    about="each",
    across=True,
    history="each",
    foresight=300.0,
    kl=0.01,
    mixing=0.0,
    hidden=64,
    every=1,
    fits=16,
    batch=64,
    learning_rate=1e-3,
    anneal=True,
    selector="last",
    horizon=15,
    prior=GoalConfig(ahead=15, kl=0.03, net=NetConfig(kind="centred")),
)
FORETOLD = OpponentLearnerConfig(
    net=NetConfig(hidden=128), fits=64, batch=256, learning_rate=1e-3, anneal=True
)

IN_TRIALS = TrainConfig(
    net=NetConfig(kind="centred", hidden=128),
    parts=("opponent", "goal", "world", "imagination"),
    goal=FORESEEING,
    opponent=FORETOLD,
    world=WorldLearnerConfig(fits=48, anneal=True),
    ppo=PPOConfig(
        games=1024,
        unroll=32,
        epochs=2,
        minibatches=64,
        learning_rate=1e-3,
        clip=0.3,
        value_weight=0.15,
    ),
    trial=5,
    train_against="all",
    steps=16_000_000,
)


def _learning_from(search: SearchConfig, distil: DistilConfig, *parts: PartName) -> TrainConfig:
    ppo = PPOConfig(minibatches=16)
    return TrainConfig(parts=parts, ppo=ppo, search=search, distil=distil, steps=500_000)


# To add one of one's own: register_preset(name, config, about); or name it module:PRESET.
PRESETS: Registry[TrainConfig] = Registry(
    "preset",
    {
        "ppo": TrainConfig(),
        "ppo-shared": TrainConfig(ppo=PPOConfig(parameters="shared")),
        "ppo-prosocial": TrainConfig(ppo=PPOConfig(prosociality=1.0)),
        # Both kinds of aversion with their weights in Hughes et al. (2018), where each is alone.
        "inequity": TrainConfig(ppo=PPOConfig(inequity=InequityConfig(alpha=5.0, beta=0.05))),
        "social-influence": TrainConfig(
            parts=("opponent",), ppo=PPOConfig(influence=InfluenceConfig(weight=1.0))
        ),
        # Neither ratio nor value is clipped, and each step learned from once, in as many gradient
        # steps as ppo takes.
        "pg": TrainConfig(ppo=PPOConfig(epochs=1, minibatches=16, clip=LARGE, value_clip=LARGE)),
        # Each batch is of whole episodes of the coin game: what an act changes in the other's is
        # seen no further than a batch goes.
        "lola": TrainConfig(
            game=CoinConfig(),
            ppo=PPOConfig(
                games=64,
                unroll=40,
                epochs=1,
                minibatches=1,
                clip=LARGE,
                value_clip=LARGE,
                learning_rate=5e-3,
                lola=LolaConfig(step=3.0),
            ),
        ),
        "ppo-memory": TrainConfig(
            memory=MemoryConfig(kind="trial"), trial=5, train_against="all", steps=5_000_000
        ),
        # Of what was tried in Stag-Hunt this comes furthest among families that are left out.
        "ppo-population": TrainConfig(
            net=NetConfig(kind="centred", hidden=128),
            memory=MemoryConfig(kind="trial"),
            context="recurrent+record",
            ppo=replace(IN_TRIALS.ppo, games=8192, value_weight=0.5),
            trial=5,
            train_against="population",
            steps=192_000_000,
        ),
        "liam": TrainConfig(
            parts=("liam",),
            liam=LiamConfig(across=True),
            trial=5,
            train_against="all",
            steps=5_000_000,
        ),
        "goal": TrainConfig(parts=("opponent", "goal")),
        "goal-trial": TrainConfig(
            net=NetConfig(kind="centred"),
            parts=("opponent", "goal"),
            goal=FORESEEING,
            opponent=FORETOLD,
            ppo=PPOConfig(unroll=32),
            trial=5,
            train_against="all",
            steps=5_000_000,
        ),
        "belief": TrainConfig(parts=("opponent", "belief"), belief=BeliefConfig(none=True)),
        # More than twice the steps to learn from carry larger and more gradient steps. Values learn
        # from the real ones alone, a bit more than a quarter of them, and weigh that much less.
        "hop-plus": TrainConfig(
            parts=("opponent", "goal", "world", "imagination"),
            ppo=PPOConfig(
                epochs=2, minibatches=16, learning_rate=2e-3, clip=0.3, value_weight=0.15
            ),
            steps=500_000,
        ),
        # As the research notes ran it, with what made their value loss rise.
        "hop-plus-notes": TrainConfig(
            parts=("opponent", "goal", "world", "imagination"),
            ppo=PPOConfig(games=64, unroll=64, gae_lambda=1.0),
            world=WorldLearnerConfig(
                model=WorldConfig(head="cells", hidden=32), fits=4, learning_rate=1e-3
            ),
            imagine=ImagineConfig(
                real_ratio=0.5,
                horizon=35,
                critic_on="both",
                reward="predicted",
                goals="zero",
                warm_up=0,
                gate=1.0,
            ),
            steps=500_000,
        ),
        "hop-plus-trial": IN_TRIALS,
        "hop-plus-memory": replace(
            IN_TRIALS,
            parts=("opponent", "world", "imagination"),
            goal=GoalLearnerConfig(),
            memory=MemoryConfig(kind="trial"),
            train_against="population",
        ),
        "direct-om": _learning_from(SEARCH, ROOT_VALUES, "opponent"),
        "hop": _learning_from(SEARCH, ROOT_VALUES, "opponent", "belief"),
        "hop-plus-mcts": _learning_from(SEARCH, ROOT_VALUES, "opponent", "goal"),
        "one-step": _learning_from(ONE_STEP, DistilConfig(), "opponent", "world"),
    },
    group="hopplus.presets",
    kind=TrainConfig,
)
ABOUT: Registry[str] = Registry(
    "preset",
    {
        "ppo": "PPO self-play, independent parameters for every seat",
        "ppo-shared": "PPO self-play, parameters shared by all seats",
        "ppo-prosocial": "PPO self-play, every seat gets the mean reward of all seats",
        "inequity": "PPO self-play with inequity aversion",
        "social-influence": "PPO self-play with a reward for social influence",
        "pg": "policy gradient self-play: PPO with one epoch and without clipping",
        "lola": "LOLA: policy gradient that anticipates how the other seat learns",
        "ppo-memory": "PPO with a recurrent memory; one seat learns in trials among drawn"
        " co-players",
        "ppo-population": "PPO with a memory and a record of the trial; one seat learns among a"
        " population",
        "liam": "PPO with LIAM's embedding; one seat learns in trials among drawn co-players",
        "goal": "PPO with goal inference and opponent models, without a world model",
        "goal-trial": "PPO with goals trained to predict actions; one seat learns among drawn"
        " co-players",
        "belief": "PPO with opponent models and a belief over what each is after",
        "hop-plus": "HOP+: PPO with goal inference, opponent models, a world model and"
        " imagined rollouts",
        "hop-plus-notes": "HOP+ with the research notes' settings, whose value loss rises",
        "hop-plus-trial": "HOP+ with goals trained to predict actions; one seat learns among"
        " drawn co-players",
        "hop-plus-memory": "HOP+ with a memory instead of goals; one seat learns among a"
        " population",
        "direct-om": "Direct-OM: learns from a search with opponent models without goals",
        "hop": "HOP: learns from a search with opponent models under goals drawn from a belief",
        "hop-plus-mcts": "HOP+ with search: learns from a search with opponent models under"
        " inferred goals",
        "one-step": "learns from one-step lookahead in a learned world, with opponent models",
    },
)


def register_preset(name: str, config: TrainConfig, about: str) -> None:
    """Have `hopplus train` know a preset of one's own, for this process."""
    PRESETS.add(name, config)
    ABOUT.add(name, about)


def about_preset(name: str) -> str:
    """A preset in a line; of one that a package brings, which package that is."""
    if name in ABOUT:
        return ABOUT[name]
    brought = PRESETS.installed().get(name)
    return f"of the package {brought.dist.name}" if brought else f"{name}, from outside the package"
