"""Which setting a name that is none may mean."""

import difflib
from collections.abc import Mapping

# What the field calls things, by the last word of an option; the first that a command has is meant.
ALIASES = {
    ("lr", "step-size"): ("learning-rate",),
    ("gamma",): ("discount",),
    ("lam", "lambda", "gae"): ("gae-lambda",),
    ("batch", "batch-size"): ("minibatches", "batch"),
    ("minibatch-size", "num-minibatches", "n-minibatches"): ("minibatches",),
    ("hidden", "hidden-size", "hidden-dim", "hiddens"): ("hidden",),
    ("num-layers", "n-layers", "depth"): ("layers",),
    ("envs", "n-envs", "num-envs", "num-actors"): ("games",),
    ("num-steps", "n-steps", "rollout", "rollout-length", "rollout-steps"): ("unroll",),
    ("ent-coef", "entropy-coef", "entropy-weight"): ("entropy",),
    ("clip-coef", "clip-range", "clip-eps", "clip-epsilon"): ("clip",),
    ("vf-coef", "value-coef", "critic-coef"): ("value-weight",),
    ("vf-clip", "clip-vloss", "clip-range-vf"): ("value-clip",),
    ("max-grad-norm", "grad-norm", "grad-clip", "clip-grad"): ("gradient-norm",),
    ("total-timesteps", "timesteps", "num-timesteps", "total-steps", "max-steps"): ("steps",),
    ("update-epochs", "n-epochs", "num-epochs", "ppo-epochs"): ("epochs",),
    ("anneal-lr",): ("anneal",),
    ("sims", "n-sims", "num-sims", "num-simulations"): ("simulations",),
    ("puct", "c-puct", "cpuct"): ("exploration",),
    ("n-seeds", "num-seeds"): ("seeds",),
    ("random-seed",): ("seed",),
    ("agents", "n-agents", "num-agents", "n-players", "num-players"): ("seats",),
    ("n-episodes", "num-episodes", "eval-episodes"): ("episodes",),
    ("board", "board-size", "grid", "grid-size"): ("size",),
    ("rows",): ("height",),
    ("columns", "cols"): ("width",),
    ("episode-length", "max-episode-steps", "episode-steps"): ("horizon",),
    ("view", "view-size", "view-range", "vision"): ("sight",),
    ("exp-name", "run-name"): ("name",),
    ("output", "outdir", "output-dir", "log-dir", "logdir"): ("out", "runs"),
    ("opponents", "coplayers", "co-players"): ("against", "players", "seats"),
    ("deterministic",): ("greedy",),
}
_MEANT = {word: meant for words, meant in ALIASES.items() for word in words}
HIDDEN = 0.01  # what a name is less likely that the help does not show
ENOUGH = 0.68  # of likeness, from 0 to 1, for a name to be worth mentioning
MOST = 3  # names to mention


def nearest(word: str, options: Mapping[str, bool]) -> list[str]:
    """The options that may be meant by a word: those most like it, rather shown than hidden."""
    likeness = {
        name: _likeness(word, name) - HIDDEN * (not shown)
        for name, shown in options.items()
        if name != "--help"
    }
    most = max(likeness.values(), default=0.0)
    if most < ENOUGH:
        return []
    return [name for name, like in likeness.items() if like == most][:MOST]


def _likeness(word: str, name: str) -> float:
    """How likely it is that a word means an option: 1 for sure, 0 for not at all."""
    (group, _, last), (own_group, _, own_last) = (
        one.removeprefix("--").rpartition(".") for one in (word, name)
    )
    same_group = group == own_group
    nested = same_group or not group or own_group.startswith(f"{group}.")
    found = 0.75 * difflib.SequenceMatcher(None, word, name, autojunk=False).ratio() + 0.1
    if nested or not own_group:  # the group was left out, or there is none to name
        near = 0.02 * same_group
        meant = _MEANT.get(last, ())
        if last == own_last:
            found = max(found, 0.97 + near)
        elif own_last in meant:
            found = max(found, 0.95 - 0.03 * meant.index(own_last) + near)
        elif _initials(own_last) == last:
            found = max(found, 0.9 + near)
        elif len(last) > 2 and (own_last.startswith(last) or last.startswith(own_last)):
            found = max(found, 0.8 + near)
        elif set(last.split("-")) & set(own_last.split("-")):
            found = max(found, 0.75 + near)
        else:
            alike = difflib.SequenceMatcher(None, last, own_last, autojunk=False).ratio()
            found = max(found, 0.95 * alike - 0.02 + near)
    return round(found, 6)


def _initials(name: str) -> str:
    """`lr` for `learning-rate`; none for a single word."""
    words = name.split("-")
    return "".join(word[0] for word in words) if len(words) > 1 else ""
