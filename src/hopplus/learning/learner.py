"""One update of everyone who learns: play, look back, improve."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from hopplus.config import DistilConfig, PPOConfig, SearchConfig
from hopplus.devices import split_rows
from hopplus.games.game import Game, views
from hopplus.learning.auxiliary.learner import by_set
from hopplus.learning.auxiliary.learners import AuxiliaryLearners, AuxiliaryState
from hopplus.learning.auxiliary.transitions import Transitions, transitions_of
from hopplus.learning.policy_loss import PolicyLoss
from hopplus.learning.policy_slope import Minibatch, in_form
from hopplus.learning.ppo import Batch, Improved, anneal_entropy, annealed, explained, mean_of
from hopplus.learning.returns import episode_metrics, game_returns, hangs_on_value, worth_later
from hopplus.learning.search_distillation import distilled, empty_replay
from hopplus.learning.shares import all_shares, by_shares, own_share
from hopplus.learning.social_rewards import SocialRewards, shared_reward
from hopplus.lookup import along
from hopplus.models.part import Metrics
from hopplus.play.lineup import Lineup
from hopplus.play.rollout import Play, rollout, start
from hopplus.play.seating import Seating
from hopplus.players.actor import Actor
from hopplus.players.parameters import PlayerParams
from hopplus.players.planner import Planner
from hopplus.types import Params, Trajectory


class Lesson(eqx.Module):
    """What an update was made from, for whoever wants to look into it."""

    plays: Play  # [B, ...] the games after what was played
    trajectory: Trajectory  # [T, B, ...]
    batch: Batch  # [sets, M, ...] what was made of it, imagined steps behind
    drawn: Batch | None  # what was learned from instead: older steps too, or a search's own values


Step: TypeAlias = tuple[Improved, optax.OptState]  # what an update replaces by what is better


class Learning(eqx.Module):
    """Everything that changes while learning; nothing else is needed to go on."""

    params: tuple[Params, ...]  # for each distinct player, its sets of parameters
    optimiser: optax.OptState  # of the learning player's sets
    auxiliary_state: AuxiliaryState  # what auxiliary models need to go on
    plays: Play  # [B, ...] games in flight
    returns: jax.Array  # [B, N] float32, of the episodes in flight
    key: jax.Array
    updates: jax.Array  # [] int32; the same for all seeds
    replay: Batch | None = None  # [sets, U, M, ...] batches of the last U updates, where kept
    smoothed: jax.Array | None = None  # [B, N] rewards of late, where seats compare them


@dataclass(frozen=True)
class Learner:
    """Learns for the seats of one player among others that stay as they are."""

    game: Game
    lineup: Lineup
    config: PPOConfig
    updates: int  # how many there will be, for annealing
    learning: int  # which of the seating's groups learns
    auxiliary: AuxiliaryLearners
    distil: DistilConfig = field(default_factory=DistilConfig)
    # Functions by which it works, as fields: the diagnosis tries itself on learners in which one of
    # them makes a mistake, and wants them to be alike in everything else.
    assemble: Callable[[Batch, int], Batch] = by_set  # steps [T, B, n] for each set of parameters
    credit: Callable[[jax.Array, float], jax.Array] = shared_reward  # [..., N] what each is to gain
    commit: Callable[[Step, Step, jax.Array], Step] = lambda old, new, updates: new
    recall: Callable[..., tuple[Batch, Batch | None]] = distilled  # what is learned from, and kept
    log_episodes: Callable[[jax.Array, Trajectory], tuple[jax.Array, Metrics]] = episode_metrics

    @property
    def seating(self) -> Seating:
        return self.lineup.seating

    @property
    def search(self) -> SearchConfig | None:
        """The search that the policy learns from; None for PPO."""
        player = self.seating.groups[self.learning][0]
        return player.config if isinstance(player, Planner) else None

    @property
    def discount(self) -> float:
        """What a reward is worth a step later."""
        return self.search.worth if self.search else self.config.discount

    @property
    def actor(self) -> Actor:
        player = self.seating.groups[self.learning][0]
        actor = player.actor if isinstance(player, Planner) else player
        assert isinstance(actor, Actor)
        return actor

    @property
    def seats(self) -> np.ndarray:
        return self.seating.groups[self.learning][1]

    @property
    def policy_loss(self) -> PolicyLoss:
        return PolicyLoss(self.actor, self.auxiliary, self.config, self.search is not None)

    @property
    def social(self) -> SocialRewards:
        given = self.config, self.auxiliary.seats, self.discount
        return SocialRewards(self.game, self.actor, *given)

    @cached_property
    def optimiser(self) -> optax.GradientTransformation:
        adam = optax.adam(annealed(self.config, self.updates), eps=1e-5)
        return optax.chain(optax.clip_by_global_norm(self.config.gradient_norm), adam)

    def init(self, key: jax.Array, absent: jax.Array | None = None) -> Learning:
        """Fresh parameters and games, without the one of number `absent` [] of mixtures, if any."""
        key, key_params, key_games = jax.random.split(key, 3)
        params = self.lineup.init(key_params)
        every_set = self.auxiliary.known(params[self.learning])
        params = self.with_param_sets(params, every_set)
        keys = jax.random.split(key_games, self.config.games)
        plays = jax.vmap(lambda one: start(self.game, self.seating, one, absent=absent))(keys)
        after, trajectory, shapes = jax.eval_shape(self._play, params, plays)
        played = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        replay = None
        if kept := -(-self.distil.replay // self.config.steps):
            replay = empty_replay(jax.eval_shape(self.batch, every_set, after, trajectory), kept)
        param_sets = own_share(every_set)
        return Learning(
            params=self.with_param_sets(params, param_sets),
            optimiser=jax.vmap(self.optimiser.init)(self.improved(param_sets)),
            auxiliary_state=self.auxiliary.init(param_sets, played),
            plays=plays,
            returns=jnp.zeros((self.config.games, self.game.seats)),
            key=key,
            updates=jnp.int32(0),
            replay=replay,
            smoothed=self.social.init(),
        )

    def init_all(self, keys: jax.Array, absent: jax.Array | None = None) -> Learning:
        """As `init` for the keys [S] of all seeds, and whoever is absent [S] there."""
        begin: Callable[..., Learning] = jax.vmap(self.init, out_axes=self.axes)
        return begin(keys, absent)

    def update_all(self, now: Learning) -> tuple[Learning, Metrics]:
        """As `update` for all seeds, [S, ...] but for the number of updates."""
        if len(now.key) > 1:  # an axis of one would be more to trace and compile
            return jax.vmap(self.update, in_axes=(self.axes,), out_axes=(self.axes, 0))(now)
        one, metrics = self.update(jax.tree.map(lambda leaf: leaf.reshape(leaf.shape[1:]), now))
        learning = jax.tree.map(lambda leaf, before: leaf.reshape(before.shape), one, now)
        return learning, {name: leaf[None] for name, leaf in metrics.items()}

    @property
    def axes(self) -> Learning:
        """The number of updates is one for all seeds, so that what is not due costs nothing."""
        return Learning(0, 0, 0, 0, 0, 0, updates=None, replay=0, smoothed=0)  # type: ignore[arg-type]

    def with_param_sets(
        self, params: tuple[Params, ...], param_sets: PlayerParams | None
    ) -> tuple[Params, ...]:
        """The parameters of everyone with those of the learning player in place."""
        return tuple(
            param_sets if group == self.learning else old for group, old in enumerate(params)
        )

    def improved(self, param_sets: PlayerParams) -> Improved:
        """What the policy's loss is to improve of parameters [sets, ...]."""
        learned = self.actor.context.learned_by_policy
        context = self.actor.context.learnable(param_sets.context) if learned else None
        return Improved(param_sets.policy, context)

    def with_improved(self, param_sets: PlayerParams, improved: Improved) -> PlayerParams:
        """The parameters with what was improved in place."""
        context = self.actor.context.with_learned(param_sets.context, improved.context)
        return replace(param_sets, policy=improved.policy, context=context)

    def _play(
        self, params: tuple[Params, ...], plays: Play
    ) -> tuple[Play, Trajectory, Transitions]:
        play = partial(rollout, self.game, self.seating, params, steps=self.config.unroll)
        plays, trajectory = by_shares(play, plays, self.config.games)
        context = self.actor.context
        played = transitions_of(trajectory, self.learning, self.seats, context.size)
        assert played.inferred is not None
        known = context.known_later(played.inferred, trajectory.outcome, self.seats)
        return plays, trajectory, replace(played, inferred=known)

    def update(self, now: Learning) -> tuple[Learning, Metrics]:
        """Play `unroll` steps of every game and improve on them."""
        return self.update_shown(now)[:2]

    def update_shown(
        self, now: Learning, acting: PlayerParams | None = None
    ) -> tuple[Learning, Metrics, Lesson]:
        """As `update`, and what it was made from; played with parameters [sets, ...] that are
        `acting` instead of those that learn, if there are any."""
        key, key_epochs = jax.random.split(now.key)
        param_sets: PlayerParams = now.params[self.learning]  # of the sets that learn here
        every_set = all_shares(param_sets)
        acting = every_set if acting is None else acting
        plays, trajectory, played = self._play(self.with_param_sets(now.params, acting), now.plays)
        social, smoothed, metrics = self.social(every_set, trajectory, now.smoothed, now.updates)
        batch = self.batch(acting, plays, trajectory, social)
        known = self.unfinished(plays, trajectory), along(trajectory.present, self.seats, 2)
        unfinished = jax.vmap(mean_of)(*by_set(known, len(self.auxiliary.seats)))
        metrics = own_share(metrics | {"real/unfinished": unfinished})
        metrics["explained"] = jax.vmap(explained)(batch.value, batch.returns, batch.present)
        param_sets, auxiliary, lessons, found = self.auxiliary.learn(
            param_sets,
            now.auxiliary_state,
            played,
            batch,
            now.updates,
            jax.random.fold_in(key_epochs, 1),
        )
        drawing = (now.updates, self.config.games, jax.random.fold_in(key_epochs, 2))
        given, replay = self.recall(lessons, now.replay, self.distil, param_sets.trusts, *drawing)
        if (trusts := param_sets.trusts) is not None:
            found["search/open"] = trusts.astype(jnp.float32)
            trusts = found["world/error"] <= self.distil.gate
        improved, optimiser, losses = self.improve(
            self.improved(param_sets), now.optimiser, given, now.updates, key_epochs
        )
        param_sets = self.with_improved(replace(param_sets, trusts=trusts), improved)
        params = self.with_param_sets(now.params, param_sets)
        returns, episodes = self.log_episodes(now.returns, trajectory)
        more = (now.updates + 1, replay, smoothed)
        after = Learning(params, optimiser, auxiliary, plays, returns, key, *more)
        shown = Lesson(plays, trajectory, lessons, None if given is lessons else given)
        return after, episodes | all_shares(metrics | found | losses), shown

    def batch(
        self,
        param_sets: PlayerParams,
        plays: Play,
        trajectory: Trajectory,
        social: jax.Array | None = None,
    ) -> Batch:
        """The steps of the learning seats, [sets, M, ...]: each set of parameters that learns here
        with its own; with `social` [T, B, n] rewards, if there are any."""
        c, seats, act = self.config, self.seats, trajectory.act
        seen = jax.vmap(jax.vmap(lambda state: views(self.game, state)))(trajectory.state)
        last = along(plays.view, seats, 1)
        value_after = self.actor.values(param_sets, plays.memory[self.learning], last)  # [B, n]
        value = jnp.concatenate([along(act.value, seats, 2), value_after[None]])
        present_after = jax.vmap(self.game.present)(plays.state)
        present = along(jnp.concatenate([trajectory.present, present_after[None]]), seats, 2)
        reward = along(self.credit(trajectory.outcome.reward, c.prosociality), seats, 2)
        reward = reward if social is None else reward + social
        # Who goes on gaining after it has left has a value then, too.
        valued = jnp.ones_like(present) if c.gains_after_leaving else present
        worth = self.worth_later(plays, trajectory)
        returns = game_returns(reward, value, valued, worth, c.gae_lambda)
        counted = ~self.unfinished(plays, trajectory) | (c.episodes == "any")
        remembered: dict[str, Any] = {}
        # Where a loss goes through the memories again, or through all that was done in an episode.
        if self.actor.context.learned_by_policy or c.lola.step:
            shape = (*worth.shape, len(seats))
            remembered = {
                "before": trajectory.memory[self.learning],
                "begins": jnp.broadcast_to(trajectory.begins[..., None], shape),
                "episode": jnp.broadcast_to(trajectory.episode[..., None], shape),
            }
        steps = Batch(
            view=along(seen, seats, 2),
            inferred=along(act.inferred[..., : self.actor.context.size], seats, 2),
            action=along(act.action, seats, 2),
            log_prob=along(act.log_prob, seats, 2),
            value=value[:-1],
            reward=reward,
            returns=returns,
            present=present[:-1] & counted,
            valued=valued[:-1] & counted,
            aim=along(act.logits, seats, 2) if self.search else None,
            **remembered,
        )
        return own_share(self.assemble(steps, 1 if self.actor.shares_params else len(seats)))

    def worth_later(self, plays: Play, trajectory: Trajectory) -> jax.Array:
        """[T, B] what comes after each step is worth at it."""
        episode_next = jnp.concatenate([trajectory.episode, plays.episode[None]])[1:]
        done, later = trajectory.outcome.done, self.config.trial_discount
        return worth_later(done, self.discount, episode_next, later)

    def unfinished(self, plays: Play, trajectory: Trajectory) -> jax.Array:
        """[T, B, n] bool, the return of a step hangs on the value at the end of the unroll."""
        present = along(jax.vmap(self.game.present)(plays.state), self.seats, 1)
        worth = self.worth_later(plays, trajectory)
        return hangs_on_value(worth, present | self.config.gains_after_leaving)

    @jax.named_scope("improve")
    def improve(
        self,
        sets: Improved,
        optimiser: optax.OptState,
        batch: Batch,
        updates: jax.Array,
        key: jax.Array,
    ) -> tuple[Improved, optax.OptState, Metrics]:
        """Several passes over the batch in random minibatches, every set of parameters alike."""
        c = self.config

        def step(now: Step, part: Minibatch) -> tuple[Step, Metrics]:
            params, optimiser = now
            slope, parts = slopes.find(params, part)
            change, optimiser = self.optimiser.update(slope, optimiser, params)
            parts["gradient_norm"] = optax.tree.norm(slope)
            return (optax.apply_updates(params, change), optimiser), parts

        def fetched(rows: jax.Array) -> Batch:
            return jax.tree.map(lambda leaf: leaf[:, rows], batch)

        def minibatch(now: Step, given: tuple[jax.Array, Any]) -> tuple[Step, jax.Array]:
            rows, aim = given
            part = split_rows(fetched(rows), axis=1)
            other = jax.tree.map(lambda leaf: leaf[::-1], (now[0], part)) if c.lola.step else None
            axes: Any = Minibatch(None, 0, 0, 0, 0)  # type: ignore[arg-type]
            now, parts = jax.vmap(step, (0, axes))(now, Minibatch(rows, part, read, aim, other))
            names[:] = parts
            return now, jnp.stack(list(parts.values()))  # one copy, and not one for each

        def draw(key: jax.Array) -> jax.Array:
            whole_games = self.actor.context.learned_by_policy or c.lola.step > 0
            return self.auxiliary.draw_minibatches(key, c, whole_games)

        rows = jax.lax.collapse(jax.lax.map(draw, jax.random.split(key, c.epochs)), 0, 2)  # [P, R]
        entropy = anneal_entropy(c, updates, self.updates)
        slopes = self.policy_loss.slopes(entropy, rows.shape[-1])
        read = jax.vmap(slopes.read)(sets.policy, batch)
        aims = jax.vmap(jax.vmap(slopes.aim), out_axes=1)(fetched(rows))
        begun = jax.vmap(partial(in_form, slopes.enter))((sets, optimiser))
        names: list[str] = []  # known once a minibatch is traced
        now, parts = jax.lax.scan(minibatch, begun, (rows, aims))

        def left(now: Step, like: Improved) -> Any:
            return in_form(lambda one: slopes.leave(one, like), now)

        carry = self.commit((sets, optimiser), jax.vmap(left)(now, sets), updates)
        return *carry, dict(zip(names, parts.mean(axis=0), strict=True))
