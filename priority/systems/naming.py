"""What is each vertex of a tree called in a table? Pure. A user may be in several accounts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, Self, TypeVar

from domain.errors import InvalidInputError


class Vertex(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def children(self) -> tuple[Self, ...]: ...


V = TypeVar("V", bound=Vertex)


def one_kind(_vertex: object) -> bool:
    """Users and accounts share one list of names."""
    return True


def shown_names(top: Sequence[V], kind_of: Callable[[V], bool] = one_kind) -> Mapping[int, str]:
    """A name by the identity of each vertex: its own, or the path to it where another of its kind has the same.

    Raises InvalidInputError for siblings of one kind and name.

    >>> from priority.systems.slurm import SlurmNode
    >>> tree = SlurmNode("a", children=(SlurmNode("ann"),)), SlurmNode("b", children=(SlurmNode("ann"),))
    >>> list(shown_names(tree).values())
    ['a', 'a/ann', 'b', 'b/ann']
    """
    paths = list(_paths(top, ""))
    times = Counter((kind_of(vertex), vertex.name) for vertex, _ in paths)
    twice = [path for (_, path), n in Counter((kind_of(vertex), path) for vertex, path in paths).items() if n > 1]
    if twice:
        raise InvalidInputError("tree.name", "a name of its own for each of an account's children", twice[0])
    return {id(vertex): path if times[kind_of(vertex), vertex.name] > 1 else vertex.name for vertex, path in paths}


def _paths(siblings: Sequence[V], above: str) -> Iterator[tuple[V, str]]:
    for vertex in siblings:
        yield vertex, above + vertex.name
        yield from _paths(vertex.children, f"{above}{vertex.name}/")
