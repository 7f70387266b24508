"""The JSON API: what the command line does, over HTTP."""

from __future__ import annotations

from aiohttp import web

from domain.apps import App
from domain.clock import Clock
from domain.settings import Settings
from domain.units import AppId, BatchId, JobId
from operations.accounts import AccountKeys, add_volunteer
from operations.api.bodies import (
    MAX_BODY_BYTES,
    NewAccountBody,
    NewAppBody,
    NewSubmitterBody,
    NewVolunteerBody,
    SettingBody,
    batch_id_of,
    flag_of,
    job_id_of,
    limit_of,
    read_body,
    whole_number,
)
from operations.api.errors import problems
from operations.api.explaining import Explaining
from operations.api.files import Files
from operations.api.ordering import OrderingApi
from operations.api.replies import reply
from operations.api.tokens import require_token
from operations.batches import Batches
from operations.forecasts.service import ForecastViews
from operations.names import checked_app_name, checked_name, checked_text
from operations.ordering.knobs import check_ordering
from operations.shares import checked_shares
from operations.show import account_as_json, app_as_json, job_as_json, submitter_as_json
from store.postgres import PostgresStore
from wire.attach import password_hash


class Api:
    """The handlers of /api/v1."""

    def __init__(self, store: PostgresStore, batches: Batches, files: Files, keys: AccountKeys, clock: Clock) -> None:
        self._store = store
        self._batches = batches
        self._files = files
        self._keys = keys
        self._clock = clock
        self._explaining = Explaining(store, clock)
        self._forecasts = ForecastViews(store, clock)
        self._ordering = OrderingApi(store, clock)

    def application(self) -> web.Application:
        """The sub-application to mount at /api/v1."""
        app = web.Application(
            middlewares=[problems, require_token(self._keys.api_token())], client_max_size=MAX_BODY_BYTES
        )
        app.add_routes(
            [
                web.get("/accounts", self.accounts),
                web.post("/accounts", self.add_account),
                web.get("/submitters", self.submitters),
                web.post("/submitters", self.add_submitter),
                web.post("/volunteers", self.add_volunteer),
                web.get("/apps", self.apps),
                web.post("/apps", self.add_app),
                web.post("/apps/{name}/versions", self._files.add_version),
                web.put("/files/{name}", self._files.put_input),
                web.get("/batches", self.list_batches),
                web.post("/batches", self.submit_batch),
                web.get("/batches/{batch_id}", self.show_batch),
                web.get("/batches/{batch_id}/forecasts", self.list_forecasts),
                web.get("/forecasts", self.forecast_health),
                web.post("/batches/{batch_id}/abort", self.abort_batch),
                web.get("/batches/{batch_id}/jobs", self.list_jobs),
                web.get("/jobs/{job_id}", self.show_job),
                web.get("/settings", self.list_settings),
                web.put("/settings/{key}", self.set_setting),
                *self._explaining.routes(),
                *self._ordering.routes(),
            ]
        )
        return app

    # ------------------------------------------------------------------ people

    async def accounts(self, request: web.Request) -> web.Response:
        accounts = await self._store.people.accounts()
        names = {int(a.account_id): a.name for a in accounts}
        return reply({"accounts": [account_as_json(a, names) for a in accounts]})

    async def add_account(self, request: web.Request) -> web.Response:
        body = await read_body(request, NewAccountBody)
        account = await self._store.people.add_account(
            checked_name(body.name),
            parent=checked_name(body.parent, "parent") if body.parent is not None else None,
            shares=checked_shares(body.shares),
        )
        return reply({"account_id": account.account_id, "name": account.name}, status=201)

    async def submitters(self, request: web.Request) -> web.Response:
        accounts = {int(a.account_id): a.name for a in await self._store.people.accounts()}
        submitters = await self._store.people.submitters()
        return reply({"submitters": [submitter_as_json(s, accounts) for s in submitters]})

    async def add_submitter(self, request: web.Request) -> web.Response:
        body = await read_body(request, NewSubmitterBody)
        submitter = await self._store.people.add_submitter(
            checked_name(body.name),
            account=checked_name(body.account, "account"),
            shares=checked_shares(body.shares),
            now=self._clock.now(),
        )
        return reply({"submitter_id": submitter.submitter_id, "name": submitter.name}, status=201)

    async def add_volunteer(self, request: web.Request) -> web.Response:
        body = await read_body(request, NewVolunteerBody)
        hashed = password_hash(body.password, body.email) if body.password is not None else None
        account = await add_volunteer(
            self._store.volunteers,
            self._keys,
            body.email,
            name=body.name,
            password_hash=hashed,
            now=self._clock.now(),
        )
        return reply({"volunteer_id": account.volunteer_id, "authenticator": account.authenticator}, status=201)

    # ------------------------------------------------------------------ applications

    async def apps(self, request: web.Request) -> web.Response:
        catalogue = await self._store.applications.load_catalogue()
        return reply({"apps": [app_as_json(app, catalogue) for app in catalogue.apps.values()]})

    async def add_app(self, request: web.Request) -> web.Response:
        body = await read_body(request, NewAppBody)
        added = await self._store.applications.add_app(
            App(
                AppId(0),
                checked_app_name(body.name),
                user_friendly_name=checked_text(body.user_friendly_name, "user_friendly_name"),
                beta=body.beta,
                adaptive_copies=body.adaptive_copies,
            )
        )
        return reply({"app_id": added.app_id, "name": added.name}, status=201)

    # ------------------------------------------------------------------ batches

    async def list_batches(self, request: web.Request) -> web.Response:
        before = request.query.get("before")
        rows = await self._batches.listed(
            limit=limit_of(request),
            before=BatchId(whole_number(before, "before", 1, 2**62)) if before is not None else None,
        )
        return reply({"batches": rows})

    async def submit_batch(self, request: web.Request) -> web.Response:
        """POST /batches; the reply says when it will be done. With ?preview=true it only says so."""
        mapping = await read_body(request, dict[str, object])
        if flag_of(request, "preview"):
            return reply({"forecast": await self._batches.preview(mapping, folder=None)})
        return reply(await self._batches.submit_and_preview(mapping, folder=None), status=201)

    async def show_batch(self, request: web.Request) -> web.Response:
        return reply(await self._batches.show(batch_id_of(request)))

    async def list_forecasts(self, request: web.Request) -> web.Response:
        limit = limit_of(request)
        return reply(await self._forecasts.of_batch(batch_id_of(request), limit=limit))

    async def forecast_health(self, request: web.Request) -> web.Response:
        return reply({"apps": await self._forecasts.health()})

    async def abort_batch(self, request: web.Request) -> web.Response:
        batch_id = batch_id_of(request)
        await self._batches.abort(batch_id)
        return reply(await self._batches.show(batch_id))

    async def list_jobs(self, request: web.Request) -> web.Response:
        after = request.query.get("after")
        jobs = await self._store.views.jobs(
            batch_id_of(request),
            limit=limit_of(request),
            after=JobId(whole_number(after, "after", 1, 2**62)) if after is not None else None,
        )
        return reply({"jobs": [job_as_json(job) for job in jobs]})

    async def show_job(self, request: web.Request) -> web.Response:
        return reply(job_as_json(await self._store.views.job(job_id_of(request))))

    # ------------------------------------------------------------------ settings

    async def list_settings(self, request: web.Request) -> web.Response:
        changed = await self._store.settings.settings()
        return reply({"settings": Settings.from_stored(changed)[0].as_mapping()})

    async def set_setting(self, request: web.Request) -> web.Response:
        key = request.match_info["key"]
        body = await read_body(request, SettingBody)
        why = checked_text(body.why, "why")
        changed = Settings().changed(key, body.value)
        check_ordering(changed)
        value = changed.as_mapping()[key]
        await self._store.settings.set_setting(key, value, now=self._clock.now(), who="api", why=why)
        return reply({"key": key, "value": value})
