"""Settings and thresholds over the API, with their history of changes, and simulations of changed thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from administration.changes import recorded
from administration.names import checked_text
from administration.ordering.priorities import checked_setting
from administration.show import change_as_json, setting_as_json, shown
from administration.simulations.rules import MOST_SEEDS
from administration.simulations.runs import SimulationRuns
from administration.thresholds.keys import FORESEEN, changes_of, checked_reason
from administration.thresholds.service import Thresholds
from api.paging import Page, key_of, page_of
from api.table import NOTED, Ask, NoParams, operation
from api.versions import edited_part
from domain.access import Right
from domain.bounds import name_of_setting
from domain.clock import Clock
from domain.errors import InvalidInputError
from domain.settings import Settings
from domain.views import MOST_DAYS, MOST_HOSTS, SOME_DAYS, SOME_HOSTS, SOME_SEEDS, Simulation, SimulationState
from muster_client import shapes
from store.postgres import PostgresStore

LOST = "lost"  # the process that ran it has disappeared


class SettingParams(msgspec.Struct, forbid_unknown_fields=True):
    key: str


class ResetParams(msgspec.Struct, forbid_unknown_fields=True):
    key: str
    why: str = ""
    by: str = "api"


class SettingBody(msgspec.Struct, forbid_unknown_fields=True):
    """`why` may be empty unless the setting is a threshold. `by` names the author if the request uses the project's own
    token; otherwise it is ignored.
    """

    value: Any
    why: str = ""
    by: str = "api"


class ValuesBody(msgspec.Struct, forbid_unknown_fields=True):
    """New values by key, and the reason. `by` names the author if the request uses the project's own token."""

    values: dict[str, Any]
    why: str
    by: str = "api"


ForeseenParams = msgspec.defstruct(
    "ForeseenParams", [(key.rpartition(".")[2], float | None, None) for key in FORESEEN], kw_only=True
)


class SettingsApi:
    TAG = "settings"

    def __init__(self, store: PostgresStore, thresholds: Thresholds, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._thresholds = thresholds

    @operation("GET", "/settings", "Every setting.", edited=edited_part("settings"))
    async def settings(self, ask: Ask[NoParams, None]) -> shapes.SettingsShown:
        values = (await self._store.settings.in_force()).as_mapping()
        return {"settings": values, "details": [setting_as_json(key, value) for key, value in values.items()]}

    @operation("GET", "/settings/changes", "Changes of settings with author, time and reason, newest first.")
    async def setting_changes(self, ask: Ask[Page, None]) -> shapes.SettingChangePage:
        before = key_of(ask.params.cursor, "changes", int)
        rows = await self._store.settings.setting_changes(ask.params.limit + 1, before=before)
        return page_of(shapes.SettingChangePage, rows, ask.params, lambda change: change.change_id, change_as_json)

    @operation("GET", "/settings/{key}", "One setting.", edited=edited_part("value"))
    async def setting(self, ask: Ask[SettingParams, None]) -> shapes.SettingShown:
        key = _known(ask.params.key)
        settings = await self._store.settings.in_force()
        return setting_as_json(key, settings.as_mapping()[key])

    @operation(
        "PUT",
        "/settings/{key}",
        "Change a setting. Running services apply it within seconds. A threshold requires `why`.",
        right=Right.OPERATE,
        shown_by="setting",
    )
    async def set_setting(self, ask: Ask[SettingParams, SettingBody]) -> shapes.SettingSet:
        key = ask.params.key
        value = await checked_setting(self._store.settings, key, ask.body.value)
        why = checked_reason(key, ask.body.why)
        await self._set(ask, key, value, why)
        return {"key": key, "value": value}

    @operation(
        "DELETE",
        "/settings/{key}",
        "Reset a setting to its default. A threshold requires `why`.",
        right=Right.OPERATE,
        shown_by="setting",
    )
    async def reset_setting(self, ask: Ask[ResetParams, None]) -> shapes.SettingSet:
        key, why = ask.params.key, checked_reason(ask.params.key, ask.params.why)
        if key not in await self._store.settings.settings():
            _known(key)
        await self._set(ask, key, None, why)
        return {"key": key, "value": Settings().as_mapping().get(key)}

    async def _set(self, ask: Ask[Any, Any], key: str, value: object, why: str) -> None:
        """Store the value, or the default if it is None. The audit trail gets the former value, too."""
        who, before = checked_text(ask.who, "by"), (await self._store.settings.in_force()).as_mapping()
        await self._store.settings.set_setting(key, value, now=self._clock.now(), who=who, why=why)
        ask.request[NOTED] = {"value": value, "was": before.get(key), "why": why}

    @operation("GET", "/thresholds", "Every threshold with its effect and last change.")
    async def thresholds(self, ask: Ask[NoParams, None]) -> shapes.ThresholdsShown:
        return {"thresholds": await self._thresholds.show()}

    @operation(
        "GET",
        "/thresholds/preview",
        "Preview the effect of these values on hosts as of `hosts_read_at` and on waiting jobs; nothing is changed.",
        params=ForeseenParams,
        open_params=True,
    )
    async def preview_thresholds(self, ask: Ask[Any, None]) -> shapes.ThresholdsPreviewed:
        given = ((key, _number(value)) for key, value in ask.request.query.items())
        return await self._thresholds.preview(changes_of(given, FORESEEN))

    @operation("PUT", "/thresholds", "Change thresholds, all or none.", right=Right.OPERATE, shown_by="settings")
    async def set_thresholds(self, ask: Ask[NoParams, ValuesBody]) -> shapes.Changed:
        body = ask.body
        changes = changes_of(body.values.items())
        changed = await self._thresholds.set(changes, who=ask.who, why=body.why)
        ask.request[NOTED] = recorded(changed)
        return {"changed": changed}


def _known(key: str) -> str:
    known = Settings().as_mapping()
    if key not in known:
        raise InvalidInputError("key", name_of_setting(key, known), key)
    return key


def _number(text: str) -> object:
    """Parse a number. Other text is returned unchanged and rejected later with an error that names the threshold.

    >>> _number("0.85"), _number("high")
    (0.85, 'high')
    """
    try:
        return float(text)
    except ValueError:
        return text


class SimulationParams(msgspec.Struct, forbid_unknown_fields=True):
    simulation_id: Annotated[int, msgspec.Meta(ge=1, le=2**62)]


class TriedBody(msgspec.Struct, forbid_unknown_fields=True):
    """New values by key, the number of seeds, the maximum number of hosts, and the number of simulated days."""

    values: dict[str, Any]
    seeds: Annotated[int, msgspec.Meta(ge=1, le=MOST_SEEDS)] = SOME_SEEDS
    hosts: Annotated[int, msgspec.Meta(ge=1, le=MOST_HOSTS)] = SOME_HOSTS
    days: Annotated[float, msgspec.Meta(gt=0.0, le=MOST_DAYS)] = SOME_DAYS


class SimulationsApi:
    TAG = "settings"

    def __init__(self, store: PostgresStore, runs: SimulationRuns, clock: Clock) -> None:
        self._store = store
        self._runs = runs
        self._clock = clock

    @operation(
        "POST",
        "/thresholds/simulations",
        "Simulate the project with its current thresholds and with these, in the background, one simulation at a time. "
        "`Location` is the address of its progress.",
        right=Right.SUBMIT,
        status=202,
        errors=(409,),
        leads_to="simulation",
    )
    async def simulate_thresholds(self, ask: Ask[NoParams, TriedBody]) -> shapes.SimulationShown:
        """Start a simulation. Submitters may do this, because it uses a CPU but changes no project data."""
        from administration.thresholds.replay import start_replay  # noqa: PLC0415  the simulator, with it

        body = ask.body
        changes = changes_of(body.values.items())
        simulation_id = await start_replay(self._store, self._clock, self._runs, changes, body, who=ask.person.name)
        return self._shown(await self._store.simulations.simulation(simulation_id))

    @operation("GET", "/simulations/{simulation_id}", "The progress and result of a simulation.", errors=(404,))
    async def simulation(self, ask: Ask[SimulationParams, None]) -> shapes.SimulationShown:
        return self._shown(await self._store.simulations.simulation(ask.params.simulation_id))

    @operation(
        "POST",
        "/simulations/{simulation_id}/cancel",
        "Cancel a simulation. A finished simulation is unchanged.",
        right=Right.SUBMIT,
        errors=(404,),
    )
    async def cancel_simulation(self, ask: Ask[SimulationParams, None]) -> shapes.SimulationShown:
        simulation_id = ask.params.simulation_id
        await self._store.simulations.simulation(simulation_id)
        await self._store.simulations.end(simulation_id, SimulationState.CANCELLED, now=self._clock.now())
        return self._shown(await self._store.simulations.simulation(simulation_id))

    def _shown(self, found: Simulation) -> shapes.SimulationShown:
        result = found.result
        return shown(
            shapes.SimulationShown,
            found,
            asked=dict(found.asked),
            state=LOST if found.is_lost(self._clock.now()) else found.state.value,
            result=None if result is None else _told(result),
        )


def _told(result: Mapping[str, object]) -> dict[str, Any]:
    """Return a replay's results for a simulation of thresholds, or the whole result for a comparison of rules.

    >>> _told({"rows": [], "replayed": {"seeds": 3}}), _told({"rows": []})
    ({'seeds': 3}, {'rows': []})
    """
    replayed = result.get("replayed")
    return dict(replayed if isinstance(replayed, Mapping) else result)
