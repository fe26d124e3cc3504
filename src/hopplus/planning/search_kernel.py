"""What a simulation does with a tree in one kernel, on a GPU.

XLA makes some forty kernels of it, most of which take as long to start as to run. Here a warp does
it for one tree: it adds up what was found along the path, finds the edges ahead anew, writes the
new node down and reads the one that comes next. What is between two such kernels is the world and
the networks.

Many trees wait for memory more than for anything else. So all that is known of a node lies side by
side, and each place of a path is a line or two of it.

`search.py` is what it is held to: both grow the same tree, but for rounding.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from hopplus.config import SearchConfig
from hopplus.devices import spread_by_xla
from hopplus.kernels import has_room, on_gpu, triton_options
from hopplus.planning.packing import Packing, lines, packing_of
from hopplus.planning.tree import Leaf, Reached, Tree, puct

PLACES = 8  # of a path that are looked at together
AT_ONCE = 1024  # words of a node that are copied together


class Growing(eqx.Module):
    """A tree that is to be looked into next at a node's edge. Without axes, as Pallas would have
    them be powers of two."""

    nodes: jax.Array  # [M * words] int32
    scores: jax.Array  # [M * F] float32: visits, total and prior [A], reward [A * K], value
    links: jax.Array  # [M * I] int32: child [A * K], ahead, depth
    back: jax.Array  # [M * D] int32: edges from the node to the root, the last first
    node: jax.Array  # [words, and room behind them] int32, that node
    edge: jax.Array  # [1] int32


@dataclass(frozen=True)
class TreeKernel:
    """For trees of one shape."""

    nodes: int
    actions: int
    depths: int
    words: int  # of a node
    config: SearchConfig
    interpret: bool = False  # by plain operations of JAX, slowly, wherever there is no GPU

    @property
    def edges(self) -> int:
        """Of a node."""
        return self.actions * self.config.outcomes

    @property
    def scores(self) -> int:
        """Numbers of a node in `Growing.scores`."""
        return lines(3 * self.actions + self.edges + 1)

    @property
    def links(self) -> int:
        """Numbers of a node in `Growing.links`."""
        return lines(self.edges + 2)

    def begin(self, tree: Tree, packing: Packing) -> Growing:
        """A tree of a root alone, in this form."""

        def only_root(row: jax.Array, size: int) -> jax.Array:
            return jnp.zeros(self.nodes * size, row.dtype).at[: len(row)].set(row)

        root = packing.pack(jax.tree.map(lambda leaf: leaf[0], tree.nodes))
        unknown = jnp.zeros(2 * self.actions), tree.prior[0], jnp.zeros(self.edges), tree.value[:1]
        links = jnp.zeros(self.edges, jnp.int32), tree.ahead[:1], tree.depth[:1]
        return Growing(
            nodes=only_root(root, self.words),
            scores=only_root(jnp.concatenate(unknown), self.scores),
            links=only_root(jnp.concatenate(links), self.links),
            back=tree.path.reshape(-1),
            node=jnp.pad(root, (0, room_of(self.words) - len(root))),
            edge=tree.ahead[:1],
        )

    def tree(self, growing: Growing, packing: Packing) -> Tree:
        """The tree with axes of its own again."""
        rows = growing.scores.reshape(self.nodes, -1)
        links = growing.links.reshape(self.nodes, -1)
        visits, total, prior, reward, value = _parts(rows, *[self.actions] * 3, self.edges, 1)
        child, ahead, depth = _parts(links, self.edges, 1, 1)
        back = growing.back.reshape(self.nodes, -1)
        places = jnp.maximum(depth - 1 - jnp.arange(self.depths), 0)
        return Tree(
            nodes=jax.vmap(packing.unpack)(growing.nodes.reshape(self.nodes, -1)),
            value=value[:, 0],
            prior=prior,
            visits=visits,
            total=total,
            child=child.reshape(-1),
            reward=reward.reshape(-1),
            path=jnp.take_along_axis(back, places, axis=1),
            depth=depth[:, 0],
            ahead=ahead[:, 0],
        )

    def grow(self, growing: Growing, new: jax.Array, node: jax.Array, reached: Reached) -> Growing:
        """After a simulation, with what was reached, a node [words], as number `new` []."""
        found = (new, reached.leaf.value, reached.reward, reached.ended.astype(jnp.int32))
        given = [jnp.reshape(one, 1) for one in found]
        given += [jnp.exp(reached.leaf.prior), node]
        leaves, structure = jax.tree.flatten(growing)
        kept = leaves[:4]  # the node and its edge are only told
        after = pl.pallas_call(
            self._kernel,
            out_shape=[jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves],
            input_output_aliases={len(given) + number: number for number in range(len(kept))},
            interpret=self.interpret,
            name="grow_tree",
            **({} if self.interpret else triton_options(warps=1)),
        )(*given, *kept)
        grown: Growing = jax.tree.unflatten(structure, after)
        return grown

    def _kernel(self, *refs: Any) -> None:
        """The path is gone up from its end, some places at a time; whatever is read has not been
        written before, as both are the same arrays."""
        new_ref, value_ref, reward_ref, ended_ref, prior_ref, made = refs[:6]
        nodes_ref, scores, links, ways = refs[6:10]
        out = Growing(*refs[10:])
        c, nodes, outcomes, row = self.config, self.nodes, self.config.outcomes, self.edges
        rewards_at, value_at = 3 * self.actions, 3 * self.actions + row
        ahead_at, depth_at = row, row + 1
        steps = jnp.arange(PLACES)  # [D] from the end of the path to its root
        actions = jnp.arange(1 << (self.actions - 1).bit_length())  # [A]
        inside = actions < self.actions
        new, reached_value = new_ref[0], value_ref[0]
        new_prior = _read(prior_ref, actions, inside)
        new_ahead = (new * self.actions + jnp.argmax(new_prior)) * outcomes

        edge = links[ahead_at]
        parent = _over(edge, row)
        reward_of_edge = parent * self.scores + rewards_at + edge - parent * row
        child_of_edge = parent * self.links + edge - parent * row
        depth = links[parent * self.links + depth_at]
        known = links[child_of_edge]
        fresh = known == 0
        ended = jnp.where(fresh, ended_ref[0] > 0, known == nodes)
        leads_to = jnp.where(fresh, jnp.where(ended, nodes, new), known)
        reward = jnp.where(fresh, reward_ref[0], scores[reward_of_edge])
        met = jnp.where(fresh, 0, jnp.minimum(known, nodes - 1))
        value = jnp.where(fresh, reached_value, scores[met * self.scores + value_at])
        last_gain = reward + jnp.where(ended, 0.0, c.worth * value)
        # What a gain at one step is worth at another nearer to the root.
        apart = (steps[:, None] - steps).astype(jnp.float32)
        discount = math.log(max(c.worth, 1e-30))
        worth = jnp.where(apart >= 0, jnp.exp(jnp.maximum(apart, 0.0) * discount), 0.0)
        worth_behind = jnp.exp((steps + 1).astype(jnp.float32) * discount)

        def climb(number: jax.Array, later: Any) -> Any:
            later_return, later_ahead, _ = later  # of the place behind these
            far = number * PLACES + steps  # from the end
            places = depth - far
            here, before = places >= 0, (places >= 0) & (far > 0)
            # Read without knowing how deep the node is: that comes from memory, too.
            own = parent * self.depths + far
            path = _read(ways, own - 1, (far > 0) & (far <= self.depths))
            path = jnp.where(far == 0, edge, jnp.where(here, path, 0))
            onto = _read(ways, own - 2, (far > 1) & (far <= self.depths))
            onto = jnp.where(far == 1, edge, jnp.where(here, onto, 0))
            stops = _over(path, row)  # nodes along it; the root behind its end
            acts = _over(path - stops * row, outcomes)
            its_scores, its_links = stops * self.scores, stops * self.links
            gains = _read(scores, its_scores + rewards_at + path - stops * row, before)
            gains = jnp.where(far == 0, last_gain, gains)
            returns = (worth * gains).sum(axis=1) + worth_behind * later_return

            there = here[:, None] & inside  # [D, A]
            took = there & (actions == acts[:, None])
            visits, total, prior = (
                _read(scores, its_scores[:, None] + begin + actions, there)
                for begin in (0, self.actions, 2 * self.actions)
            )
            visits += jnp.where(took, 1.0, 0.0)
            total += jnp.where(took, returns[:, None], 0.0)
            values = _read(scores, its_scores + value_at, here)
            over_places = jax.vmap(puct, in_axes=(0, 0, 0, 0, None))
            best = jnp.argmax(over_places(values, prior, visits, total, c), axis=1)  # [D]
            is_best = actions == best[:, None]
            if outcomes == 1:  # all are read while scores are, as the best is known only after
                edges = stops * row + best
                child = _read(links, its_links[:, None] + actions, there)
                child = jnp.where(is_best, child, 0).sum(axis=1)
            else:
                turn = jnp.where(is_best, visits, 0.0).sum(axis=1).astype(jnp.int32)
                behind = best * outcomes + jax.lax.rem(turn, jnp.full_like(best, outcomes))
                edges = stops * row + behind
                child = _read(links, its_links + behind, here)
            child = jnp.where(edges == edge, leads_to, child)
            ends = (child == 0) | (child == nodes) | (places == self.depths - 1)
            onward = _read(links, child * self.links + ahead_at, here & ~ends)
            onward = jnp.where(ends, edges, jnp.where(child == new, new_ahead, onward))
            stays = (far > 0) & (child == _over(onto, row))
            # A descent leaves the path at the nearest step, from here to its end, that does not
            # stay on it.
            leaves = jnp.where((apart >= 0) & ~stays, steps, -1).max(axis=1)
            ahead = jnp.where(steps == leaves[:, None], onward, 0).sum(axis=1)
            ahead = jnp.where(leaves < 0, later_ahead, ahead)

            spare = new * self.scores  # of a node that is not on the path
            for begin, numbers in ((0, visits), (self.actions, total)):
                taken = jnp.where(took, numbers, 0.0).sum(axis=1)
                _write(out.scores, its_scores + begin + acts, taken, here, spare)
            _write(out.links, its_links + ahead_at, ahead, here, new * self.links + ahead_at)
            _write(out.back, new * self.depths + far, path, here & (far < self.depths), 0)
            first = steps == PLACES - 1
            root = jnp.where(places == 0, ahead, 0).sum()
            return jnp.where(first, returns, 0.0).sum(), jnp.where(first, ahead, 0).sum(), root

        nothing = jnp.float32(0), jnp.int32(0), jnp.int32(0)
        next_edge = jax.lax.fori_loop(0, _over(depth, PLACES) + 1, climb, nothing)[2]
        come = _over(next_edge, row)
        for begin in range(0, self.words, width := width_of(self.words)):
            places = begin + jnp.arange(width)
            mask = places < self.words
            found = _read(made, places, mask)
            other = _read(nodes_ref, come * self.words + places, mask)
            _write(out.nodes, new * self.words + places, found, mask, 0)
            out.node[pl.ds(begin, width)] = jnp.where(come == new, found, other)
        new_scores, new_links = new * self.scores, new * self.links
        out.links[child_of_edge] = leads_to
        out.scores[reward_of_edge] = reward
        out.scores[new_scores + value_at] = reached_value
        out.links[new_links + depth_at] = depth + 1
        out.links[new_links + ahead_at] = new_ahead
        _write(out.scores, new_scores + 2 * self.actions + actions, new_prior, inside, new_scores)
        out.edge[0] = next_edge


def kernel_for(
    tree: Tree, config: SearchConfig, *, interpret: bool = False
) -> tuple[TreeKernel, Packing] | None:
    """The one for trees like that [M, ...] on this machine, and how it has their nodes; None where
    XLA's are to be taken."""
    if not (interpret or on_gpu()) or spread_by_xla():
        return None
    packing = packing_of(jax.tree.map(lambda leaf: leaf[0], tree.nodes))
    if packing is None:
        return None
    nodes, actions = tree.prior.shape
    kernel = TreeKernel(nodes, actions, tree.path.shape[1], packing.words, config, interpret)
    return (kernel, packing) if interpret or _has_room(kernel) else None


@cache
def _has_room(kernel: TreeKernel) -> bool:
    def shape(size: int, kind: Any = jnp.float32) -> Any:
        return jax.ShapeDtypeStruct((size,), kind)

    def number(kind: Any) -> Any:
        return jax.ShapeDtypeStruct((), kind)

    whole = jnp.int32
    growing = Growing(
        nodes=shape(kernel.nodes * kernel.words, whole),
        scores=shape(kernel.nodes * kernel.scores),
        links=shape(kernel.nodes * kernel.links, whole),
        back=shape(kernel.nodes * kernel.depths, whole),
        node=shape(room_of(kernel.words), whole),
        edge=shape(1, whole),
    )
    leaf = Leaf(shape(kernel.actions), number(jnp.float32))
    reached = Reached((), leaf, number(jnp.float32), number(bool))
    return has_room(kernel.grow, growing, number(whole), shape(kernel.words, whole), reached)


def _parts(rows: jax.Array, *sizes: int) -> list[jax.Array]:
    """[..., size] of [..., W], side by side from the first."""
    ends = np.cumsum(sizes).tolist()
    return [rows[..., end - size : end] for size, end in zip(sizes, ends, strict=True)]


def width_of(size: int) -> int:
    """How many of so many numbers are copied at once: a power of two, of which some may be behind
    the last."""
    return min(AT_ONCE, 1 << (size - 1).bit_length())


def room_of(size: int) -> int:
    """Of all that are copied, with those behind the last."""
    return -(-size // width_of(size)) * width_of(size)


def _read(ref: Any, places: jax.Array, mask: jax.Array) -> jax.Array:
    """Numbers at places where the mask holds, and 0 elsewhere."""
    from jax.experimental.pallas import triton  # who has no GPU need not have it

    return triton.load(ref.at[jnp.where(mask, places, 0)], mask=mask, other=0)


def _write(
    ref: Any, places: jax.Array, values: jax.Array, mask: jax.Array, spare: jax.Array | int
) -> None:
    """Numbers to places where the mask holds; `spare` is a place that is none of them."""
    from jax.experimental.pallas import triton

    triton.store(ref.at[jnp.where(mask, places, spare)], values, mask=mask)


def _over(numbers: jax.Array, count: int) -> jax.Array:
    """Numbers, none of them negative, over a count."""
    return jax.lax.div(numbers, jnp.full_like(numbers, count))
