"""Who is in the zoo: every preset in every game, and some on larger boards."""

from typing import NamedTuple

from hopplus.presets import PRESETS

SEED = 0  # of all, chosen before anybody looked


class Entry(NamedTuple):
    """One of the zoo."""

    about: str
    chinese: str
    game: str  # its key in GAMES
    preset: str
    options: str  # of `hopplus train`, with that preset

    def command(self, name: str) -> str:
        return f"hopplus train {self.preset} {self.options} --seed {SEED} --name {name}"


class Game(NamedTuple):
    """A board of the zoo, with nets as small as the package can carry."""

    title: str
    chinese: str
    option: str  # of --game
    steps: str  # of self-play
    net: int = 64  # hidden size of policies
    models: int = 24  # of memories and of models of the others
    only: tuple[str, ...] = ()  # presets that are there; all when empty


class Kind(NamedTuple):
    """A preset as it is told to those who choose whom to play with."""

    about: str
    chinese: str
    steps: str | None = None  # as on that board when not given


GAMES = {
    "stag-hunt-4x4": Game("Stag-Hunt, 4x4", "猎鹿，4x4", "stag-hunt-v1", "1e6"),
    "stag-hunt-8x8": Game(
        "Stag-Hunt, 8x8",
        "猎鹿，8x8",
        "stag-hunt-v1 --game.size 8",
        "4e6",
        only=("ppo-shared", "hop-plus-memory"),  # in 4x4 the game has everyone already
    ),
    "coin": Game("Coin game, 5x5", "硬币游戏，5x5", "coin-v1", "6e5"),
    # As narrow as its many cells and four seats ask for.
    "snowdrift": Game("Snowdrift, 8x8", "雪堆，8x8", "snowdrift-v1", "6e5", net=32, models=16),
}
_DRAWN, _DRAWN_CHINESE = "learned among drawn co-players", "在抽取的同局玩家中学习"
KINDS = {
    "ppo-shared": Kind(
        "PPO self-play, one player for all seats", "PPO 自我对弈，所有座位同一个玩家"
    ),
    "ppo": Kind(
        "PPO self-play, a player of its own in every seat", "PPO 自我对弈，每个座位各有一个玩家"
    ),
    "ppo-prosocial": Kind(
        "PPO self-play for the mean reward of all seats", "PPO 自我对弈，奖励是所有座位的平均"
    ),
    "inequity": Kind("PPO self-play with inequity aversion", "PPO 自我对弈，厌恶不平等"),
    "social-influence": Kind(
        "PPO self-play with a reward for influence on what others do",
        "PPO 自我对弈，影响别人的动作有奖励",
    ),
    "pg": Kind("policy gradient self-play, without clipping", "策略梯度自我对弈，不做截断"),
    "lola": Kind(
        "LOLA, two seats, each of which anticipates how the other learns",
        "LOLA，两个座位，各自预计对方如何学习",
        "1e6",
    ),
    "goal": Kind("PPO, which infers goals and predicts what you do", "PPO，推断目标并预测你的动作"),
    "belief": Kind("PPO, which has a belief about what you are after", "PPO，对你想要什么有信念"),
    "hop-plus": Kind(
        "HOP+, which infers goals and predicts what you do", "HOP+，推断目标并预测你的动作", "5e5"
    ),
    "hop-plus-notes": Kind(
        "HOP+ with the research notes' settings, whose value loss rises",
        "HOP+，按研究笔记的设置，价值损失会上升",
        "5e5",
    ),
    "ppo-memory": Kind(f"PPO with a memory, {_DRAWN}", f"带记忆的 PPO，{_DRAWN_CHINESE}", "1e6"),
    "ppo-population": Kind(
        "PPO with a memory and a record of the trial, learned among a population",
        "带记忆和试验记录的 PPO，在群体中学习",
        "2e6",
    ),
    "liam": Kind(
        f"PPO with LIAM's embedding of you, {_DRAWN}",
        f"PPO，带 LIAM 的嵌入，{_DRAWN_CHINESE}",
        "1e6",
    ),
    "goal-trial": Kind(
        f"PPO, whose goals last for a trial, {_DRAWN}",
        f"PPO，目标在整次试验中保留，{_DRAWN_CHINESE}",
        "1e6",
    ),
    "hop-plus-trial": Kind(
        f"HOP+, whose goals last for a trial, {_DRAWN}",
        f"HOP+，目标在整次试验中保留，{_DRAWN_CHINESE}",
        "1e6",
    ),
    "hop-plus-memory": Kind(
        "HOP+ with a memory, learned among a population", "带记忆的 HOP+，在群体中学习", "1e6"
    ),
    "one-step": Kind("looks one step ahead in a learned world", "在学到的世界中向前看一步", "3e5"),
    "direct-om": Kind(
        "Direct-OM, which searches with models of you", "Direct-OM，用对手模型进行搜索", "3e5"
    ),
    "hop": Kind(
        "HOP, which has a belief about you and searches", "HOP，对你有信念并进行搜索", "3e5"
    ),
    "hop-plus-mcts": Kind(
        "HOP+ with search, under the goals that it infers",
        "带搜索的 HOP+，按推断的目标进行搜索",
        "3e5",
    ),
}
SHORT = {"ppo-shared": "", "hop-plus-memory": "-memory"}  # what follows the game in their names
# Of those that were there before the table was. Batches are small, for many updates in few steps.
_SMALL = "--net.hidden 64 --memory.size 32 --opponent.net.hidden 32"
_SMALL += " --ppo.games 128 --ppo.minibatches 16"
_EARLIER = {
    "stag-hunt-4x4": "--steps 1e6",
    "stag-hunt-4x4-hop-plus": "--ppo.parameters shared --steps 5e5",
    "stag-hunt-4x4-hop": "--ppo.parameters shared --steps 3e5",
    "stag-hunt-8x8": "--game.size 8 --steps 4e6",
    "stag-hunt-8x8-memory": f"--game.size 8 {_SMALL} --steps 2e6",
    "snowdrift": "--game snowdrift-v1 --steps 6e5",
    "snowdrift-memory": f"--game snowdrift-v1 {_SMALL} --steps 2e6",
    "coin": "--game coin-v1 --steps 6e5",
    "coin-memory": f"--game coin-v1 {_SMALL} --steps 2e6",
}


def name_of(game: str, preset: str) -> str:
    """What follows `zoo:`."""
    return game + SHORT.get(preset, f"-{preset}")


def _options(game: Game, preset: str) -> str:
    """The preset on that board: nets as small as the package can carry, of those that its players
    have, and as few of them as the method allows."""
    made = PRESETS[preset]
    words = [f"--game {game.option}", f"--net.hidden {game.net}"]
    if made.ppo.lola.step:
        words.append("--game.seats 2")  # it takes two who learn
    elif not made.draws and preset not in ("ppo", "ppo-shared"):  # these two are about that
        words.append("--ppo.parameters shared")
    if made.memory.kind != "none":
        words.append(f"--memory.size {game.models}")
    if "opponent" in made.parts:
        words.append(f"--opponent.net.hidden {game.models}")
    if "goal" in made.parts:
        words.append(f"--goal.prior.net.hidden {game.models}")
        words += [f"--goal.hidden {game.models}"] * (made.goal.hidden > game.models)
    if "liam" in made.parts:
        words.append(f"--liam.hidden {game.models}")
    if made.draws:
        words.append(f"--ppo.games 128 --ppo.minibatches {min(16, made.ppo.minibatches)}")
    return " ".join([*words, f"--steps {KINDS[preset].steps or game.steps}"])


def _entry(game: str, preset: str) -> Entry:
    board, kind = GAMES[game], KINDS[preset]
    options = _EARLIER.get(name_of(game, preset)) or _options(board, preset)
    about, chinese = f"{board.title}: {kind.about}", f"{board.chinese}：{kind.chinese}"
    return Entry(about, chinese, game, preset, options)


ENTRIES = {
    name_of(game, preset): _entry(game, preset)
    for game, board in GAMES.items()
    for preset in board.only or KINDS
}
