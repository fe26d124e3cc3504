"""Players that follow a script, and the table of them where users add their own."""

from hopplus.players.scripted.script import Scripted as Scripted
from hopplus.players.scripted.script import Seek as Seek
from hopplus.players.scripted.table import SCRIPTED as SCRIPTED
from hopplus.players.scripted.table import Mixed as Mixed
from hopplus.players.scripted.table import Row as Row
from hopplus.players.scripted.table import drawn_from as drawn_from
from hopplus.players.scripted.table import mixed_names as mixed_names
from hopplus.players.scripted.table import player_names as player_names
from hopplus.players.scripted.table import register_player as register_player
from hopplus.players.scripted.table import scripted as scripted
