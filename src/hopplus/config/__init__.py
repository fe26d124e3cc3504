"""Settings: frozen dataclasses that hold every default and check themselves when made."""

from typing import TypeAlias

# `X as X` tells type checkers that a name is handed on, without a second list of them all.
from hopplus.config.auxiliary import PARTS as PARTS
from hopplus.config.auxiliary import AuxiliaryConfig as AuxiliaryConfig
from hopplus.config.auxiliary import GoalLearnerConfig as GoalLearnerConfig
from hopplus.config.auxiliary import ImagineConfig as ImagineConfig
from hopplus.config.auxiliary import LiamConfig as LiamConfig
from hopplus.config.auxiliary import OpponentLearnerConfig as OpponentLearnerConfig
from hopplus.config.auxiliary import PartName as PartName
from hopplus.config.auxiliary import PartRule as PartRule
from hopplus.config.auxiliary import WorldLearnerConfig as WorldLearnerConfig
from hopplus.config.auxiliary import find_part as find_part
from hopplus.config.board_games import BoardConfig as BoardConfig
from hopplus.config.board_games import CoinConfig as CoinConfig
from hopplus.config.board_games import SnowdriftConfig as SnowdriftConfig
from hopplus.config.board_games import StagHuntConfig as StagHuntConfig
from hopplus.config.check import LARGE as LARGE
from hopplus.config.check import MANY as MANY
from hopplus.config.check import ConfigError as ConfigError
from hopplus.config.check import check as check
from hopplus.config.check import check_above as check_above
from hopplus.config.check import check_options as check_options
from hopplus.config.check import check_range as check_range
from hopplus.config.check import check_whole as check_whole
from hopplus.config.game import GameConfig as GameConfig
from hopplus.config.game import GameRow as GameRow
from hopplus.config.games import ABOUT_JAXMARL as ABOUT_JAXMARL
from hopplus.config.games import DEFAULT_GAME as DEFAULT_GAME
from hopplus.config.games import GAMES as GAMES
from hopplus.config.games import JAXMARL as JAXMARL
from hopplus.config.games import default_game as default_game
from hopplus.config.games import find_game as find_game
from hopplus.config.games import make_config as make_config
from hopplus.config.models import BeliefConfig as BeliefConfig
from hopplus.config.models import FitConfig as FitConfig
from hopplus.config.models import GoalConfig as GoalConfig
from hopplus.config.models import MemoryConfig as MemoryConfig
from hopplus.config.models import NetConfig as NetConfig
from hopplus.config.models import OpponentConfig as OpponentConfig
from hopplus.config.models import PretrainConfig as PretrainConfig
from hopplus.config.models import PretrainGoal as PretrainGoal
from hopplus.config.models import PretrainOpponent as PretrainOpponent
from hopplus.config.models import PretrainWorld as PretrainWorld
from hopplus.config.models import TraitsConfig as TraitsConfig
from hopplus.config.models import TypesConfig as TypesConfig
from hopplus.config.models import WorldConfig as WorldConfig
from hopplus.config.plain import change as change
from hopplus.config.plain import differing as differing
from hopplus.config.plain import flat as flat
from hopplus.config.plain import from_json as from_json
from hopplus.config.plain import to_json as to_json
from hopplus.config.search import DistilConfig as DistilConfig
from hopplus.config.search import SearchConfig as SearchConfig
from hopplus.config.social import InequityConfig as InequityConfig
from hopplus.config.social import InfluenceConfig as InfluenceConfig
from hopplus.config.social import LolaConfig as LolaConfig
from hopplus.config.toml import read_toml as read_toml
from hopplus.config.toml import to_toml as to_toml
from hopplus.config.train import FOR_EVER as FOR_EVER
from hopplus.config.train import MIXED as MIXED
from hopplus.config.train import PPOConfig as PPOConfig
from hopplus.config.train import TrainConfig as TrainConfig

RunConfig: TypeAlias = TrainConfig | PretrainConfig  # what a run folder may be of
