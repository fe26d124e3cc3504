"""What a simulation does with a tree in one kernel, on a GPU.

XLA makes some forty kernels of it, most of which take as long to start as to run. Here a warp does
it for one tree: it adds up what was found along the path, finds the edges ahead anew, writes the
new node down and reads the one that comes next. What is between two such kernels is the world and
the networks.

`search.py` is what it is held to: both grow the same tree, but for rounding.
"""

import math
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from hopplus.config import SearchConfig
from hopplus.devices import spread_by_xla
from hopplus.kernels import has_room, on_gpu, triton_options
from hopplus.planning.tree import Leaf, Node, Reached, Tree, puct

PLACES = 16  # of a path that are looked at together
AT_ONCE = 1024  # numbers of a node that are copied together
# What the numbers of a node may be, and as what they are kept. Pallas finds its places in arrays of
# up to 4 GiB by 32 bits with a sign, which are too few for so many single bytes.
KINDS = {"float32": "float32", "int32": "int32", "uint32": "uint32"} | {
    "bool": "uint16",
    "uint8": "uint16",
    "int8": "int16",
}


class Growing(eqx.Module):
    """A tree that is to be looked into next at a node's edge."""

    tree: Tree  # flat, without what is empty, numbers as they are kept; its nodes are a list
    node: list[jax.Array]  # flat likewise, with room behind it: that node
    edge: jax.Array  # [1] int32


@dataclass(frozen=True)
class TreeKernel:
    """For trees of one shape."""

    nodes: int
    actions: int
    depths: int
    sizes: tuple[int, ...]  # of the leaves of a node
    kinds: tuple[str, ...]  # of their numbers, as they are kept
    config: SearchConfig
    interpret: bool = False  # by plain operations of JAX, slowly, wherever there is no GPU

    def begin(self, tree: Tree) -> Growing:
        """A tree of a root alone, in this form."""

        def first(leaf: jax.Array) -> jax.Array:
            root = _flat(leaf[0])
            return jnp.pad(root, (0, _room(len(root)) - len(root)))

        nodes = _solid(tree.nodes)
        flat: Tree = jax.tree.map(_flat, replace(tree, nodes=nodes))
        return Growing(flat, [first(leaf) for leaf in nodes], tree.ahead[:1])

    def node(self, growing: Growing, like: Tree) -> Node:
        """The node that is to be looked into."""
        leaves = iter(growing.node)

        def shaped(old: jax.Array) -> jax.Array:
            shape = old.shape[1:]
            if not math.prod(shape):
                return jnp.zeros(shape, old.dtype)
            return next(leaves)[: math.prod(shape)].reshape(shape).astype(old.dtype)

        return jax.tree.map(shaped, like.nodes)

    def tree(self, growing: Growing, like: Tree) -> Tree:
        """The tree with axes of its own again."""

        def shaped(leaf: jax.Array, old: jax.Array) -> jax.Array:
            return leaf.reshape(old.shape).astype(old.dtype)

        leaves = iter(growing.tree.nodes)
        nodes = jax.tree.map(lambda old: shaped(next(leaves), old) if old.size else old, like.nodes)
        found: Tree = jax.tree.map(shaped, replace(growing.tree, nodes=()), replace(like, nodes=()))
        return replace(found, nodes=nodes)

    def grow(self, growing: Growing, new: jax.Array, reached: Reached) -> Growing:
        """After a simulation, with what was reached as node number `new` []."""
        found = (new, reached.leaf.value, reached.reward, reached.ended.astype(jnp.int32))
        given = [jnp.reshape(one, 1) for one in found]
        given += [jnp.exp(reached.leaf.prior)]
        given += [_flat(leaf) for leaf in _solid(reached.node)]
        leaves, structure = jax.tree.flatten(growing)
        kept = len(jax.tree.leaves(growing.tree))
        after = pl.pallas_call(
            partial(self._kernel, structure),
            out_shape=[jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves],
            input_output_aliases={len(given) + number: number for number in range(kept)},
            interpret=self.interpret,
            name="grow_tree",
            **({} if self.interpret else triton_options(warps=1)),
        )(*given, *leaves[:kept])
        grown: Growing = jax.tree.unflatten(structure, after)
        return grown

    def _kernel(self, structure: Any, *refs: Any) -> None:
        """The path is gone up from its end, some places at a time; whatever is read has not been
        written before, as both are the same arrays."""
        out: Growing = jax.tree.unflatten(structure, refs[-structure.num_leaves :])
        new_ref, value_ref, reward_ref, ended_ref, prior_ref = refs[:5]
        made = refs[5 : 5 + len(self.sizes)]
        tree: Tree = jax.tree.unflatten(
            jax.tree.structure(out.tree), refs[5 + len(self.sizes) : -structure.num_leaves]
        )
        c, nodes, outcomes, row = self.config, self.nodes, self.config.outcomes, self._row
        steps = jnp.arange(PLACES)  # [D] from the end of the path to its root
        actions = jnp.arange(1 << (self.actions - 1).bit_length())  # [A]
        inside = actions < self.actions
        new, reached_value = new_ref[0], value_ref[0]
        new_prior = _read(prior_ref, actions, inside)
        new_ahead = (new * self.actions + jnp.argmax(new_prior)) * outcomes

        edge = tree.ahead[0]
        parent = _over(edge, row)
        depth = tree.depth[parent]
        known = tree.child[edge]
        fresh = known == 0
        ended = jnp.where(fresh, ended_ref[0] > 0, known == nodes)
        leads_to = jnp.where(fresh, jnp.where(ended, nodes, new), known)
        reward = jnp.where(fresh, reward_ref[0], tree.reward[edge])
        seen = tree.value[jnp.where(fresh, 0, jnp.minimum(known, nodes - 1))]
        value = jnp.where(fresh, reached_value, seen)
        last_gain = reward + jnp.where(ended, 0.0, c.worth * value)
        # What a gain at one step is worth at another nearer to the root.
        apart = (steps[:, None] - steps).astype(jnp.float32)
        discount = math.log(max(c.worth, 1e-30))
        worth = jnp.where(apart >= 0, jnp.exp(jnp.maximum(apart, 0.0) * discount), 0.0)
        worth_behind = jnp.exp((steps + 1).astype(jnp.float32) * discount)

        def climb(number: jax.Array, behind: Any) -> Any:
            later_return, later_ahead, _ = behind  # of the place behind these
            places = depth - number * PLACES - steps
            here, before = places >= 0, (places >= 0) & (places < depth)
            own = parent * self.depths + places
            path = jnp.where(places == depth, edge, _read(tree.path, own, before))
            not_last = before & (places + 1 < depth)
            onto = jnp.where(places + 1 == depth, edge, _read(tree.path, own + 1, not_last))
            stops = _over(path, row)  # nodes along it; the root behind its end
            acts = _over(path, outcomes) - stops * self.actions
            gains = jnp.where(places == depth, last_gain, _read(tree.reward, path, before))
            returns = (worth * gains).sum(axis=1) + worth_behind * later_return

            cells = stops[:, None] * self.actions + actions  # [D, A]
            there = here[:, None] & inside
            took = there & (actions == acts[:, None])
            visits, total, prior = (
                _read(leaf, cells, there) for leaf in (tree.visits, tree.total, tree.prior)
            )
            visits += jnp.where(took, 1.0, 0.0)
            total += jnp.where(took, returns[:, None], 0.0)
            values = _read(tree.value, stops, here)
            over_places = jax.vmap(puct, in_axes=(0, 0, 0, 0, None))
            best = jnp.argmax(over_places(values, prior, visits, total, c), axis=1)  # [D]
            edges = (stops * self.actions + best) * outcomes
            if outcomes > 1:
                turn = jnp.where(actions == best[:, None], visits, 0.0).sum(axis=1)
                edges += jax.lax.rem(turn.astype(jnp.int32), jnp.full_like(best, outcomes))
            child = jnp.where(edges == edge, leads_to, _read(tree.child, edges, here))
            ends = (child == 0) | (child == nodes) | (places == self.depths - 1)
            onward = _read(tree.ahead, child, here & ~ends)
            onward = jnp.where(ends, edges, jnp.where(child == new, new_ahead, onward))
            stays = (places < depth) & (child == _over(onto, row))
            # A descent leaves the path at the nearest step, from here to its end, that does not
            # stay on it.
            leaves = jnp.where((apart >= 0) & ~stays, steps, -1).max(axis=1)
            ahead = jnp.where(steps == leaves[:, None], onward, 0).sum(axis=1)
            ahead = jnp.where(leaves < 0, later_ahead, ahead)

            spare = new * self.actions  # of a node that is not on the path
            _write(out.tree.visits, cells, visits, there, spare)
            _write(out.tree.total, cells, total, there, spare)
            _write(out.tree.ahead, stops, ahead, here, new)
            _write(out.tree.path, new * self.depths + places, path, here, 0)
            first = steps == PLACES - 1
            root = jnp.where(places == 0, ahead, 0).sum()
            return jnp.where(first, returns, 0.0).sum(), jnp.where(first, ahead, 0).sum(), root

        nothing = jnp.float32(0), jnp.int32(0), jnp.int32(0)
        next_edge = jax.lax.fori_loop(0, _over(depth, PLACES) + 1, climb, nothing)[2]
        come = _over(next_edge, row)
        for number, (kept, size) in enumerate(self._leaves(tree.nodes)):
            for begin in range(0, size, width := width_of(size)):
                places = begin + jnp.arange(width)
                mask = places < size
                found = _read(made[number], places, mask)
                other = _read(kept, come * size + places, mask)
                _write(out.tree.nodes[number], new * size + places, found, mask, 0)
                out.node[number][pl.ds(begin, width)] = jnp.where(come == new, found, other)
        out.tree.child[edge] = leads_to
        out.tree.reward[edge] = reward
        out.tree.value[new] = reached_value
        out.tree.depth[new] = depth + 1
        out.tree.ahead[new] = new_ahead
        _write(out.tree.prior, new * self.actions + actions, new_prior, inside, 0)
        out.edge[0] = next_edge

    @property
    def _row(self) -> int:
        """Edges of a node."""
        return self.actions * self.config.outcomes

    def _leaves(self, nodes: Node) -> list[tuple[Any, int]]:
        return list(zip(jax.tree.leaves(nodes), self.sizes, strict=True))


def kernel_for(tree: Tree, config: SearchConfig, *, interpret: bool = False) -> TreeKernel | None:
    """The one for trees like that [M, ...] on this machine; None where XLA's are to be taken."""
    leaves = _solid(tree.nodes)
    nodes, actions = tree.prior.shape
    depths = tree.path.shape[1]
    kinds = tuple(KINDS.get(str(leaf.dtype), "") for leaf in leaves)
    sizes = tuple(math.prod(leaf.shape[1:]) for leaf in leaves)
    if not (interpret or on_gpu()) or spread_by_xla() or "" in kinds:
        return None
    kernel = TreeKernel(nodes, actions, depths, sizes, kinds, config, interpret)
    return kernel if interpret or _has_room(kernel) else None


@cache
def _has_room(kernel: TreeKernel) -> bool:
    def shape(size: int, kind: Any = jnp.float32) -> Any:
        return jax.ShapeDtypeStruct((size,), kind)

    leaves = list(zip(kernel.sizes, kernel.kinds, strict=True))
    nodes, cells = kernel.nodes, kernel.nodes * kernel.actions
    edges = cells * kernel.config.outcomes
    tree = Tree(
        nodes=[shape(nodes * size, kind) for size, kind in leaves],
        value=shape(nodes),
        prior=shape(cells),
        visits=shape(cells),
        total=shape(cells),
        child=shape(edges, jnp.int32),
        reward=shape(edges),
        path=shape(nodes * kernel.depths, jnp.int32),
        depth=shape(nodes, jnp.int32),
        ahead=shape(nodes, jnp.int32),
    )
    number: Any = jax.ShapeDtypeStruct((), jnp.float32)
    flag: Any = jax.ShapeDtypeStruct((), bool)
    node, made = ([shape(long(size), kind) for size, kind in leaves] for long in (_room, int))
    reached = Reached(made, Leaf(shape(kernel.actions), number), number, flag)
    new = jax.ShapeDtypeStruct((), jnp.int32)
    return has_room(kernel.grow, Growing(tree, node, shape(1, jnp.int32)), new, reached)


def _solid(nodes: Node) -> list[jax.Array]:
    """The leaves of nodes in which there is anything."""
    return [leaf for leaf in jax.tree.leaves(nodes) if leaf.size]


def _flat(leaf: jax.Array) -> jax.Array:
    """Without axes, of numbers as they are kept."""
    return leaf.astype(KINDS[str(leaf.dtype)]).reshape(-1)


def width_of(size: int) -> int:
    """How many of so many numbers are copied at once: a power of two, of which some may be behind
    the last."""
    return min(AT_ONCE, 1 << (size - 1).bit_length())


def _room(size: int) -> int:
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
