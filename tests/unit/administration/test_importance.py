"""Changes of a batch's importance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from administration.access.who import Person
from administration.ordering.importance import ImportanceBody, choices_for, choices_of, effects_of, set_importance
from administration.stopped import NOTHING_STOPPED, Stopped
from domain.access import Role
from domain.apps import CPU
from domain.errors import InvalidInputError, NotFoundError
from domain.ordered_work import Permission
from domain.ordering import BatchFacts, ServiceLevel
from domain.ordering_settings import OrderingSettings
from domain.ranking import CutPoints, HostStatisticsRun
from domain.restrictions import Restricted, Restriction
from domain.units import DAY_S, HOUR_S, AccountId, BatchId, Instant, Seconds, SubmitterId, later
from jobs.ordering.ordering_pass import Orderer
from jobs.spec import HIGHEST_PRIORITY, parse_batch
from jobs.submission import SubmissionPorts, submit
from priority.charging import queues
from priority.policies import POLICIES, Policy, policy_of
from priority.scheme import PolicyContext
from tests.builders import NOW
from tests.facts import states
from tests.memory import MemoryStore
from tests.stores import as_postgres
from tests.unit.jobs.projects import HandClock, KnownFiles
from tests.worlds import a_registered_host, a_registered_version, a_sent_instance


@pytest.fixture
async def store() -> MemoryStore:
    """Return a store in which Ada of the lab may also submit for the institute."""
    store = MemoryStore()
    await a_registered_version(store)
    for name in ("lab", "institute", "elsewhere"):
        await store.people.add_account(name, parent=None, shares=1.0)
    await store.people.add_submitter("ada", account="lab", shares=1.0, now=NOW)
    await store.people.put_membership("ada", account="institute", shares=1.0)
    return store


async def submitted(store: MemoryStore, **changes: object) -> BatchId:
    table = {"app": "pi", "qos": "throughput", "submitter": "ada", "jobs": {"fpops_est": 1e12, "count": 2}, **changes}
    ports = SubmissionPorts(store.submissions, store.people, store.applications, KnownFiles())
    ordering = (await store.applications.load_catalogue()).settings.ordering
    return await submit(parse_batch(table), ports=ports, ordering=ordering, clock=HandClock())


async def account_of(store: MemoryStore, batch_id: BatchId) -> str:
    names = {one.account_id: one.name for one in await store.people.accounts()}
    return names[(await store.views.batch(batch_id)).account_id]


async def moved_at(store: MemoryStore, batch_id: BatchId) -> Instant | None:
    standing = await store.forecasts.standing(batch_id)
    assert standing is not None
    return standing.age.moved_at


async def test_batch_moves_to_another_account_of_its_submitter(store: MemoryStore) -> None:
    batch_id = await submitted(store)

    await set_importance(as_postgres(store), batch_id, ImportanceBody(account="institute", user_priority=-7), now=NOW)

    assert await account_of(store, batch_id) == "institute"
    assert (await store.views.batch(batch_id)).user_priority == -7
    with states(InvalidInputError, "account:", "submitter ada", "(institute, lab)", "'elsewhere'"):
        await set_importance(as_postgres(store), batch_id, ImportanceBody(account="elsewhere"), now=NOW)


async def test_only_values_that_act_start_a_new_rate(store: MemoryStore) -> None:
    batch_id, ordering = await submitted(store), OrderingSettings()
    await submitted(store)  # which the level standby lets pass
    effects = effects_of(ordering, ())
    assert not effects["user_priority"].acts and not effects["queue"].acts

    async def moved_by(**asked: Any) -> Instant | None:
        await set_importance(as_postgres(store), batch_id, ImportanceBody(**asked), now=NOW)
        return await moved_at(store, batch_id)

    assert await moved_by(user_priority=-7, queue="express", level="normal") is None
    assert await moved_by(level="standby") == NOW
    assert await moved_by(level="normal", queue="bonus") == later(NOW, ordering.interval_s)
    batch_id = await submitted(store)
    assert await moved_by(queue="bonus") == later(NOW, ordering.interval_s)
    await store.settings.set_settings({"ordering.policy": "multifactor"}, now=NOW, who="ada", why="")
    batch_id = await submitted(store)
    assert await moved_by(user_priority=0) is None
    assert await moved_by(user_priority=-7) == later(NOW, ordering.interval_s)


async def test_level_that_keeps_the_position_starts_no_new_rate(store: MemoryStore) -> None:
    """Of two batches in the order and one that is sent first, a level moves only those in the order."""
    ahead, behind = await submitted(store), await submitted(store)
    first, alone = await submitted(store, qos="afap"), Stopped(unrunnable={ahead})
    catalogue = await store.applications.load_catalogue()
    await Orderer(store.ordering, lambda: catalogue, HandClock()).run_once()

    async def moved_by(batch_id: BatchId, level: str, stopped: Stopped = NOTHING_STOPPED) -> bool:
        await set_importance(
            as_postgres(store), batch_id, ImportanceBody(level=level), by_operator=True, now=NOW, stopped=stopped
        )
        return await moved_at(store, batch_id) is not None

    assert not await moved_by(first, "expedite") and not await moved_by(first, "standby")
    assert not await moved_by(ahead, "expedite") and not await moved_by(behind, "standby")
    assert not await moved_by(behind, "expedite", alone)
    assert not await moved_by(behind, "normal")
    assert await moved_by(ahead, "standby") and await moved_by(behind, "standby")
    sent = await submitted(store)
    host = await a_registered_host(store, last_rpc_at=NOW)
    for _ in range(2):
        await a_sent_instance(store, sent, host)
    assert not await moved_by(sent, "standby")
    held = await submitted(store)
    restricted = Restriction(Restricted.BATCH, str(held), 0, "", "ada", NOW)
    assert await moved_by(held, "expedite", Stopped(restrictions={(Restricted.BATCH, str(held)): restricted}))


async def test_deadline_that_is_sent_first_starts_a_new_rate(store: MemoryStore) -> None:
    dated = await submitted(store, qos="short_deadline", deadline_s=20 * DAY_S)
    app_id = (await store.views.batch(dated)).app_id
    cuts = CutPoints(app_id, CPU, NOW, 9, (), (), retry_turnaround_s=Seconds(2 * HOUR_S))
    async with store.generations.new(now=NOW, full=False) as run:
        assert run is not None
        await run.publish([cuts], HostStatisticsRun(1, full=False, started_at=NOW, seconds=Seconds(1.0)))

    async def moved_by(deadline_at: Instant, now: Instant) -> Instant | None:
        await set_importance(as_postgres(store), dated, ImportanceBody(deadline_at=deadline_at), now=now)
        return await moved_at(store, dated)

    assert await moved_by(later(NOW, 19 * DAY_S), NOW) is None
    near_at = later(NOW, HOUR_S)
    assert await moved_by(near_at, NOW) == NOW + OrderingSettings().interval_s
    assert await moved_by(later(near_at, 60.0), later(NOW, 9.0)) == NOW + OrderingSettings().interval_s


async def test_batch_with_sent_instances_keeps_its_account(store: MemoryStore) -> None:
    batch_id = await submitted(store)
    await a_sent_instance(store, batch_id, await a_registered_host(store, last_rpc_at=NOW))

    with states(InvalidInputError, "without sent instances", "got '1 sent instances'"):
        await set_importance(as_postgres(store), batch_id, ImportanceBody(account="institute"), now=NOW)
    await set_importance(as_postgres(store), batch_id, ImportanceBody(account="lab"), now=NOW)  # unchanged

    assert await account_of(store, batch_id) == "lab"


async def test_move_needs_permissions_in_the_new_account(store: MemoryStore) -> None:
    await store.people.permit_account("lab", [Permission.RAISE, Permission.EXPEDITE])
    raised = await submitted(store, user_priority=9)
    expedited = await submitted(store, level="expedite")

    for batch_id, match in ((raised, "user_priority"), (expedited, "expedite")):
        with pytest.raises(InvalidInputError, match=match):
            await set_importance(as_postgres(store), batch_id, ImportanceBody(account="institute"), now=NOW)
    await set_importance(as_postgres(store), raised, ImportanceBody(account="institute", user_priority=0), now=NOW)

    assert await account_of(store, raised) == "institute"


async def test_deadline_can_move_into_the_future(store: MemoryStore) -> None:
    dated, plain = await submitted(store, qos="short_deadline", deadline_s=3600.0), await submitted(store)

    await set_importance(as_postgres(store), dated, ImportanceBody(deadline_at=later(NOW, 7200.0)), now=NOW)

    assert (await store.views.batch(dated)).deadline_at == later(NOW, 7200.0)
    with states(InvalidInputError, "qos short_deadline"):
        await set_importance(as_postgres(store), plain, ImportanceBody(deadline_at=later(NOW, 7200.0)), now=NOW)
    for at in (NOW, Instant(1e300), Instant(float("inf")), Instant(float("nan"))):
        with states(InvalidInputError, "deadline_at:", "after now"):
            await set_importance(as_postgres(store), dated, ImportanceBody(deadline_at=at), now=NOW)


async def test_ended_batch_cannot_change(store: MemoryStore) -> None:
    batch_id = await submitted(store)
    await store.submissions.abort_batch(batch_id, now=NOW)

    with pytest.raises(NotFoundError, match="active batch"):
        await set_importance(as_postgres(store), batch_id, ImportanceBody(account="institute"), now=NOW)
    with states(InvalidInputError, "user priority", "level", "queue", "account", "deadline"):
        await set_importance(as_postgres(store), batch_id, ImportanceBody(), now=NOW)


async def test_invalid_change_changes_nothing(store: MemoryStore) -> None:
    batch_id = await submitted(store)

    with pytest.raises(InvalidInputError, match="user_priority"):
        await set_importance(
            as_postgres(store), batch_id, ImportanceBody(account="institute", queue="express", user_priority=5), now=NOW
        )

    batch = await store.views.batch(batch_id)
    assert (await account_of(store, batch_id), batch.queue) == ("lab", "normal")


SETTINGS = {  # policy -> settings under which different fields act
    **{policy: [OrderingSettings(policy=policy)] for policy in POLICIES},
    "multifactor": [
        OrderingSettings(policy="multifactor"),
        OrderingSettings(policy="multifactor", user_weight=0.0, queue_weight=0.0, level_weight=0.0),
    ],
    "components": [
        OrderingSettings(policy="components", components=words)
        for words in (
            "QUEUETIMEWEIGHT=1",
            "USERPRIOWEIGHT=1 DEADLINEWEIGHT=1",
            "CLASSWEIGHT=1",
            "expedite.USERPRIOWEIGHT=9 QOSWEIGHT=2",
            "SERVICEWEIGHT=0 USERPRIOWEIGHT=1 DEADLINEWEIGHT=1",
        )
    ],
}
PLAIN = BatchFacts(
    BatchId(1),
    SubmitterId(1),
    AccountId(1),
    later(NOW, -9.0),
    user_priority=1,
    deadline_at=later(NOW, 999.0),
)
CHANGES: dict[str, dict[str, object]] = {
    "level": {"level": ServiceLevel.EXPEDITE},
    "queue": {"queue": "express"},
    "user_priority": {"user_priority": 9},
    "deadline": {"deadline_at": later(NOW, 10.0)},
}


@pytest.mark.parametrize("policy", SETTINGS)
def test_effects_of_fields_agree_with_the_order(policy: str) -> None:
    for ordering in SETTINGS[policy]:
        known = queues(ordering.queues).values()
        tiers = {one.name: one.tier for one in known}
        moment = PolicyContext(NOW, queue_tiers=tiers, queue_numbers={one.name: one.priority for one in known})
        rules = policy_of(ordering)

        def placed(facts: BatchFacts, rules: Policy = rules, moment: PolicyContext = moment) -> tuple[int, float]:
            found = rules.breakdown(facts, moment)
            return found.tier, found.key

        moved = {name: placed(replace(PLAIN, **change)) != placed(PLAIN) for name, change in CHANGES.items()}  # type: ignore[arg-type]  # by name
        effects = effects_of(ordering, [Permission.DEADLINE])
        assert {name: one.acts for name, one in effects.items()} == moved
        assert effects["level"].acts
        assert not effects_of(ordering, ())["deadline"].acts


async def test_only_differing_values_are_asked_for(store: MemoryStore) -> None:
    batch = await store.views.batch(await submitted(store, user_priority=-3))

    asked = ImportanceBody(user_priority=-3, level="standby", queue="normal", release=True, why="late")
    asked = asked.differing(batch)

    assert asked.given() == {"level": "standby", "release": True}
    assert asked.noted(batch) == {**asked.given(), "was": {"level": "normal"}, "why": "late"}
    assert not ImportanceBody(why="late").given()
    assert ImportanceBody(level="standby", release=False, why=" ") == ImportanceBody(level="standby")


async def test_operators_need_no_permission_for_what_they_give(store: MemoryStore) -> None:
    batch_id, asked = await submitted(store), ImportanceBody(level="expedite", user_priority=9)

    with states(InvalidInputError, "level:", "expedite"):
        await set_importance(as_postgres(store), batch_id, asked, now=NOW)
    await set_importance(as_postgres(store), batch_id, asked, by_operator=True, now=NOW)

    batch = await store.views.batch(batch_id)
    assert (batch.level, batch.user_priority) == (ServiceLevel.EXPEDITE, 9)
    offered = [
        await choices_of(as_postgres(store), batch, OrderingSettings(), by_operator=by_operator)
        for by_operator in (False, True)
    ]
    assert [one.highest_priority for one in offered] == [9, HIGHEST_PRIORITY]
    assert [Permission.EXPEDITE.value in one.missing for one in offered] == [True, False]


async def test_new_batches_are_offered_only_permitted_levels(store: MemoryStore) -> None:
    submitter_id = (await store.views.batch(await submitted(store))).submitter_id
    ada = Person("ada", Role.SUBMITTER, Role.SUBMITTER.rights, submitter_id=submitter_id)
    olga = Person("olga", Role.OPERATOR, Role.OPERATOR.rights)

    offered = [await choices_for(as_postgres(store), one, OrderingSettings()) for one in (ada, olga)]

    assert ["expedite" in one.levels for one in offered] == [False, True]
    assert ["expedite" in one.effects["level"].words for one in offered] == [False, True]
    assert [one.highest_priority for one in offered] == [0, HIGHEST_PRIORITY]
