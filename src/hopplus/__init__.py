"""hopplus: opponent-modelling players for mixed-motive Markov games."""

from hopplus.runtime import set_up

set_up()

__version__ = "0.1.0"
