"""Where does the time of a compiled program go? Its operations, added up by named scope."""

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax

Program = Callable[..., Any]


def breakdown(
    program: Program, arguments: tuple[Any, ...], scopes: Sequence[str]
) -> dict[str, float]:
    """Seconds of one run by the innermost of the `scopes` (`jax.named_scope`) an operation is in;
    `rest` has all others.

    XLA fuses operations, and each fusion counts where its result belongs.
    """
    cached = jax.config.values["jax_enable_compilation_cache"]
    jax.config.update("jax_enable_compilation_cache", False)  # programs from there tell no times
    try:
        compiled = jax.jit(program).lower(*arguments).compile()
    finally:
        jax.config.update("jax_enable_compilation_cache", cached)
    scope_of = _scopes(compiled.as_text() or "", scopes)
    jax.block_until_ready(compiled(*arguments))
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            jax.block_until_ready(compiled(*arguments))
        (trace,) = Path(folder).rglob("*.xplane.pb")
        events = jax.profiler.ProfileData.from_file(str(trace))
    spent: Counter[str] = Counter(dict.fromkeys([*scopes, "rest"], 0.0))
    for plane in events.planes:
        for line in plane.lines:
            for event in line.events:
                if scope := scope_of.get(event.name.replace(".", "_")):
                    spent[scope] += event.duration_ns / 1e9
    return dict(spent)


def _scopes(text: str, scopes: Sequence[str]) -> dict[str, str]:
    """The scope of every operation of a compiled program but loops, by its name in traces."""
    found = {}
    for line in text.splitlines():
        named = re.match(r"\s*(?:ROOT )?%?([\w.\-]+) = ", line)
        if named is None or " while(" in line or " call(" in line:
            continue
        where = re.search(r'op_name="([^"]*)"', line)
        words = re.findall(r"\w+", where[1]) if where else []  # as in jit(f)/vmap(select)/add
        inside = [word for word in words if word in scopes]
        found[named[1].replace(".", "_")] = inside[-1] if inside else "rest"
    return found
