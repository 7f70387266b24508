"""Tests that stores keep trickle messages once, up to a limit per instance, until they expire."""

from __future__ import annotations

from domain.dispatch import Trickle
from domain.units import InstanceId, Instant, later
from tests.builders import NOW
from tests.stores import Store

LONG_AGO = Instant(0.0)
A, B = InstanceId(7), InstanceId(8)


def a_trickle(text: str, instance_id: InstanceId = A, *, at: Instant = NOW, variety: str = "") -> Trickle:
    return Trickle(instance_id, Instant(100.0), at, variety, text)


async def keep(store: Store, *found: Trickle, most: int = 9, before: Instant = LONG_AGO) -> int:
    return await store.ledger.keep_trickles(found, per_instance=most, forget_before=before)


async def texts(store: Store, instance_id: InstanceId = A, *, after: int = 0, limit: int = 99) -> list[str]:
    return [one.text for one in await store.trickles.of_instance(instance_id, after=after, limit=limit)]


async def test_messages_are_read_page_by_page(store: Store) -> None:
    assert await keep(store, a_trickle("one"), a_trickle("other", B), a_trickle("two"), a_trickle("three")) == 0

    first, second = await store.trickles.of_instance(A, after=0, limit=2)

    assert first == Trickle(A, Instant(100.0), NOW, "", "one", trickle_id=first.trickle_id)
    assert second.text == "two"
    assert await texts(store, after=second.trickle_id) == ["three"]
    assert await texts(store, B) == ["other"]


async def test_a_message_that_comes_again_is_kept_once(store: Store) -> None:
    """The same text with another variety is a different message."""
    await keep(store, a_trickle("one"), a_trickle("one"))

    at = later(NOW, 60.0)
    assert await keep(store, a_trickle("one", at=at), a_trickle("one", at=at, variety="last")) == 0

    found = await store.trickles.of_instance(A, after=0, limit=9)
    assert [(one.variety, one.received_at) for one in found] == [("", NOW), ("last", at)]


async def test_an_instance_has_so_many_at_most(store: Store) -> None:
    """A repeated message takes no more room."""
    assert await keep(store, a_trickle("one"), a_trickle("two"), a_trickle("three"), most=2) == 1
    assert await keep(store, a_trickle("two"), a_trickle("four"), a_trickle("other", B), most=2) == 1

    assert await texts(store) == ["one", "two"]
    assert await texts(store, B) == ["other"]


async def test_old_messages_are_deleted_when_others_come(store: Store) -> None:
    await keep(store, a_trickle("old"))

    await keep(store, a_trickle("new", at=later(NOW, 10.0)), before=later(NOW, 5.0))

    assert await texts(store) == ["new"]
