"""What a simulation does with a tree in one kernel, on a GPU.

XLA makes some forty kernels of it, most of which take as long to start as to run. Here a warp does
it for one tree: it adds up what was found along the path, finds the edges ahead anew, writes the
new node down and reads the one that comes next. What is between two such kernels is the world and
the networks.

`search.py` is what it is held to: both grow the same tree, but for rounding.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from hopplus.config import SearchConfig
from hopplus.kernels import has_room, on_gpu, triton_options
from hopplus.planning.tree import Leaf, Node, Reached, Tree, puct

DEEPEST = 128  # paths that a warp holds well
AT_ONCE = 1024  # numbers of a node that are copied together
KINDS = ("float32", "int32", "uint32", "int8", "uint8", "bool")  # of numbers in nodes


class Growing(eqx.Module):
    """A tree that is to be looked into next at a node's edge."""

    tree: Tree  # flat, without bools and what is empty; its nodes are a list
    node: list[jax.Array]  # flat likewise, with room behind it: that node
    edge: jax.Array  # [1] int32


@dataclass(frozen=True)
class TreeKernel:
    """For trees of one shape."""

    nodes: int
    actions: int
    depths: int
    sizes: tuple[int, ...]  # of the leaves of a node
    kinds: tuple[str, ...]  # of the same
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
        """Everything is read before anything is written, as both are the same arrays."""
        out: Growing = jax.tree.unflatten(structure, refs[-structure.num_leaves :])
        new_ref, value_ref, reward_ref, ended_ref, prior_ref = refs[:5]
        made = refs[5 : 5 + len(self.sizes)]
        tree: Tree = jax.tree.unflatten(
            jax.tree.structure(out.tree), refs[5 + len(self.sizes) : -structure.num_leaves]
        )
        c, nodes, outcomes, row = self.config, self.nodes, self.config.outcomes, self._row
        places = jnp.arange(1 << (self.depths - 1).bit_length())  # [D]
        actions = jnp.arange(1 << (self.actions - 1).bit_length())  # [A]
        inside = actions < self.actions
        new, reached_value = new_ref[0], value_ref[0]

        edge = tree.ahead[0]
        parent = edge // row
        depth = tree.depth[parent]
        on_path = places <= depth
        before = parent * self.depths + places
        path = jnp.where(places == depth, edge, _read(tree.path, before, places < depth))
        onto = jnp.where(
            places + 1 == depth, edge, _read(tree.path, before + 1, places + 1 < depth)
        )
        stops = path // row  # nodes along it; the root behind its end
        acts = path // outcomes - stops * self.actions

        known = tree.child[edge]
        fresh = known == 0
        ended = jnp.where(fresh, ended_ref[0] > 0, known == nodes)
        reward = jnp.where(fresh, reward_ref[0], tree.reward[edge])
        seen = tree.value[jnp.where(fresh, 0, jnp.minimum(known, nodes - 1))]
        value = jnp.where(fresh, reached_value, seen)
        gains = jnp.where(places == depth, reward, _read(tree.reward, path, places < depth))
        gains += jnp.where((places == depth) & ~ended, c.worth * value, 0.0)
        returns = _from_end(
            depth, gains, lambda place, later: _only(place, places, gains) + c.worth * later
        )

        cells = stops[:, None] * self.actions + actions  # [D, A]
        there = on_path[:, None] & inside
        took = there & (actions == acts[:, None])
        visits, total, prior = (
            _read(leaf, cells, there) for leaf in (tree.visits, tree.total, tree.prior)
        )
        visits += jnp.where(took, 1.0, 0.0)
        total += jnp.where(took, returns[:, None], 0.0)
        scores = jax.vmap(puct, in_axes=(0, 0, 0, 0, None))(
            _read(tree.value, stops, on_path), prior, visits, total, c
        )
        best = jnp.argmax(scores, axis=1)  # [D]
        turn = jnp.where(actions == best[:, None], visits, 0.0).sum(axis=1).astype(jnp.int32)
        edges = (stops * self.actions + best) * outcomes + turn % outcomes

        leads_to = jnp.where(fresh, jnp.where(ended, nodes, new), known)
        child = jnp.where(edges == edge, leads_to, _read(tree.child, edges, on_path))
        ends = (child == 0) | (child == nodes) | (places == self.depths - 1)
        new_prior = _read(prior_ref, actions, inside)
        new_ahead = (new * self.actions + jnp.argmax(new_prior)) * outcomes
        onward = _read(tree.ahead, child, on_path & ~ends)
        onward = jnp.where(ends, edges, jnp.where(child == new, new_ahead, onward))
        stays = jnp.where((places < depth) & (child == onto // row), 1, 0)
        ahead = _from_end(
            depth,
            onward,
            lambda place, later: jnp.where(
                _only(place, places, stays) > 0, later, _only(place, places, onward)
            ),
        )
        next_edge = _only(0, places, ahead)
        come = next_edge // row
        old = [_row_of(leaf, come, size) for leaf, size in self._leaves(tree.nodes)]
        made_rows = [_row_of(leaf, 0, size) for leaf, size in zip(made, self.sizes, strict=True)]

        spare = new * self.actions  # of a node that is not on the path
        _write(out.tree.visits, cells, visits, there, spare)
        _write(out.tree.total, cells, total, there, spare)
        _write(out.tree.ahead, stops, ahead, on_path, new)
        out.tree.child[edge] = leads_to
        out.tree.reward[edge] = reward
        out.tree.value[new] = reached_value
        out.tree.depth[new] = depth + 1
        out.tree.ahead[new] = new_ahead
        _write(out.tree.prior, new * self.actions + actions, new_prior, inside, 0)
        _write(out.tree.path, new * self.depths + places, path, places < self.depths, 0)
        out.edge[0] = next_edge
        kept_and_shown = self._leaves(out.tree.nodes), jax.tree.leaves(out.node)
        for (kept, size), shown, old_row, row in zip(*kept_and_shown, old, made_rows, strict=True):
            for begin, width in parts_of(size):
                places = begin + jnp.arange(width)
                _write(kept, new * size + places, row[begin], places < size, 0)
                shown[pl.ds(begin, width)] = jnp.where(come == new, row[begin], old_row[begin])

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
    kinds = tuple(str(leaf.dtype) for leaf in leaves)
    sizes = tuple(math.prod(leaf.shape[1:]) for leaf in leaves)
    if not (interpret or on_gpu()) or depths > DEEPEST or not set(kinds) <= set(KINDS):
        return None
    kernel = TreeKernel(nodes, actions, depths, sizes, kinds, config, interpret)
    return kernel if interpret or _has_room(kernel) else None


@cache
def _has_room(kernel: TreeKernel) -> bool:
    def shape(size: int, kind: Any = jnp.float32) -> Any:
        return jax.ShapeDtypeStruct((size,), "uint8" if kind == "bool" else kind)

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
    number, flag = jax.ShapeDtypeStruct((), jnp.float32), jax.ShapeDtypeStruct((), bool)
    node, made = ([shape(long(size), kind) for size, kind in leaves] for long in (_room, int))
    reached = Reached(made, Leaf(shape(kernel.actions), number), number, flag)
    new = jax.ShapeDtypeStruct((), jnp.int32)
    return has_room(kernel.grow, Growing(tree, node, shape(1, jnp.int32)), new, reached)


def _solid(nodes: Node) -> list[jax.Array]:
    """The leaves of nodes in which there is anything."""
    return [leaf for leaf in jax.tree.leaves(nodes) if leaf.size]


def _flat(leaf: jax.Array) -> jax.Array:
    """Without axes, and without bools, of which memory has none."""
    return leaf.astype(jnp.uint8 if leaf.dtype == bool else leaf.dtype).reshape(-1)


def parts_of(size: int) -> list[tuple[int, int]]:
    """Where the parts begin in which so many numbers are copied, and how long each is: a power of
    two, so that some of it may be behind the last number."""
    width = min(AT_ONCE, 1 << (size - 1).bit_length())
    return [(begin, width) for begin in range(0, size, width)]


def _room(size: int) -> int:
    """Of all parts together."""
    return sum(width for _, width in parts_of(size))


def _row_of(leaf: Any, node: jax.Array | int, size: int) -> dict[int, jax.Array]:
    """A node's numbers in a leaf, by where a part begins."""
    row = {}
    for begin, width in parts_of(size):
        places = begin + jnp.arange(width)
        row[begin] = _read(leaf, node * size + places, places < size)
    return row


def _read(ref: Any, places: jax.Array, mask: jax.Array) -> jax.Array:
    """Numbers at places where the mask holds, and 0 elsewhere."""
    return triton.load(ref.at[jnp.where(mask, places, 0)], mask=mask, other=0)


def _write(
    ref: Any, places: jax.Array, values: jax.Array, mask: jax.Array, spare: jax.Array | int
) -> None:
    """Numbers to places where the mask holds; `spare` is a place that is none of them."""
    triton.store(ref.at[jnp.where(mask, places, spare)], values, mask=mask)


def _only(place: jax.Array | int, places: jax.Array, values: jax.Array) -> jax.Array:
    """[] the value at a place."""
    return jnp.where(places == place, values, 0).sum()


def _from_end(
    depth: jax.Array, like: jax.Array, step: Callable[[jax.Array, jax.Array], jax.Array]
) -> jax.Array:
    """[D] what `step` makes of each place up to a depth and of what it has made of the next."""
    places = jnp.arange(len(like))

    def body(number: jax.Array, carry: Any) -> Any:
        values, later = carry
        place = depth - number
        now = step(place, later)
        return jnp.where(places == place, now, values), now

    begin = jnp.zeros_like(like), jnp.zeros((), like.dtype)
    values: jax.Array = jax.lax.fori_loop(0, depth + 1, body, begin)[0]
    return values
