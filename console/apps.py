"""Shows applications: the list, and an app's settings and versions with their hosts and failures."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from aiohttp import web

from administration.access.who import admit
from administration.apps import MOST_COPIES, change_app, lost_versions, withdrawal_of
from administration.attention.service import AttentionViews
from administration.batch_errors import TAIL_CHARS, example_in_words, groups_of, version_in_words
from administration.hosts import FAILED_WITHIN_S
from administration.names import checked_app_name, chosen
from console.audit_page import changes_of
from console.restrictions import restrictions_of
from domain.access import Role
from domain.apps import App, AppVersion, OnePerVolunteer, VersionState, VersionUse
from domain.attention import NEARLY_ALL, by_app
from domain.batches import BatchState
from domain.catalogue import Catalogue
from domain.errors import ConflictError, NotFoundError
from domain.host_lists import LOOKED_AT, RecentFailures
from domain.restrictions import Restricted
from domain.units import AppVersionId, HostId, Instant, later
from domain.views import BatchChoice, BatchSort
from web.handlers import LARGEST_INT, Fields, Pages, PageServices, fields_of, get, id_of, post, reason_of, whole_number
from web.rendering import Crumb, RenderedPage

MOST_ERRORS, MOST_GROUPS = 500, 20  # latest errors of a version that are read, and groups of them shown
MOST_NAMED = 5  # batches with errors of a version that are named
MOST_BATCHES = 200  # active batches of an app that are read, in order
NO_FAILURES = RecentFailures(0, 0, 0, Instant(0.0))
ENDINGS = {  # states in which a version gets no jobs, each harder than those before; "…": asks first
    VersionState.DEPRECATED: "Deprecate",
    VersionState.WITHDRAWN: "Withdraw, leave jobs in progress",
    VersionState.ABORTED: "Withdraw, abort jobs in progress …",
}


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A version in the table. `current`: it gets new jobs."""

    version: AppVersion
    current: bool
    use: VersionUse
    failures: RecentFailures

    @property
    def failed(self) -> int:
        return self.use.errors + self.use.timed_out

    @property
    def ended(self) -> int:
        """Return the number of all results and timeouts."""
        return self.failed + self.use.valid

    @property
    def failed_fraction(self) -> float | None:
        """Return the fraction of all results and timeouts that failed; None without any."""
        return self.failed / self.ended if self.ended else None


WAS = "was."  # prefix of the field that contains a value when the form was loaded


def changed_in(fields: Fields, app: App) -> dict[str, object]:
    """Return the settings that the user changed in the form, by field name.

    Raises InvalidInputError, and ConflictError for one that another user has changed since the form was loaded.
    """
    asked, shown = _settings_in(fields), _settings_in(fields, WAS)
    changes: dict[str, object] = {}
    for name, value in asked.items():
        was, now = shown[name], getattr(app, name)
        if value in (was, now):
            continue
        if was != now:
            raise ConflictError(f"{name}: changed from {was} to {now} by another user since the form was made")
        changes[name] = value
    return changes


def _settings_in(fields: Fields, prefix: str = "") -> dict[str, object]:
    copies, volunteer = fields.get(f"{prefix}adaptive_copies", ""), fields.get(f"{prefix}one_per_volunteer", "")
    return {
        "user_friendly_name": fields.get(f"{prefix}user_friendly_name", "").strip(),
        "adaptive_copies": whole_number(copies, "adaptive_copies", 0, MOST_COPIES),
        "one_per_volunteer": chosen(OnePerVolunteer, volunteer, "one_per_volunteer"),
        **{name: prefix + name in fields for name in ("one_per_host", "beta", "deprecated")},
    }


class AppPages(Pages[PageServices]):
    def __init__(self, services: PageServices, attention: AttentionViews) -> None:
        super().__init__(services)
        self._attention = attention

    @get("/apps", "apps")
    async def show(self, request: web.Request) -> RenderedPage:
        store = self._services.store
        catalogue = await store.applications.load_catalogue()
        restrictions = await restrictions_of(store)
        failing = await self._attention.failing_versions(restrictions)
        values: dict[str, object] = {
            "failed": by_app(failing),
            "lost": await lost_versions(store.access, catalogue, catalogue.apps.keys() - catalogue.current.keys()),
            "apps": sorted(catalogue.apps.values(), key=lambda app: app.name),
            "current": catalogue.current,
            "versions": catalogue.versions.values(),
            "restrictions": restrictions,
        }
        return RenderedPage("apps.html", "Apps", "apps", values=values)

    @get("/apps/{name}", "app")
    async def app(self, request: web.Request) -> RenderedPage:
        store, since = self._services.store, later(self._services.clock.now(), -FAILED_WITHIN_S)
        app = await store.applications.app(checked_app_name(request.match_info["name"]))
        catalogue = await store.applications.load_catalogue()
        used = await store.applications.use_of_versions(app.app_id, since=since)
        failed = await store.applications.failures_of_versions(since=since)
        current = {one.app_version_id for one in catalogue.current.get(app.app_id, ())}
        rows = [
            VersionRow(one, number in current, used.get(number, VersionUse(number)), failed.get(number, NO_FAILURES))
            for number, one in catalogue.versions.items()
            if one.app_id == app.app_id
        ]
        restrictions = await restrictions_of(store)
        failing = await self._attention.failing_versions(restrictions)
        rows.sort(key=lambda row: (not row.current, row.version.platform, -row.version.version_num))
        values: dict[str, object] = {
            "app": app,
            "rows": rows,
            "looked_at": LOOKED_AT,
            "is_part": sum(one.total for one in failed.values()) >= LOOKED_AT,
            "most_copies": MOST_COPIES,
            "lost": (await lost_versions(store.access, catalogue, [app.app_id])).get(app.app_id),
            **await self._open_work(app),
            "restricted": restrictions.get((Restricted.APP, str(app.app_id))),
            "fails": {one.app_version_id: one for one in failing if one.app_version_id in current},
            "of_batch": None if app.name not in (of_app := by_app(failing)) else of_app[app.name].batch_id,
            "may": admit(request, Role.VIEWER).may(Role.OPERATOR),
        }
        return RenderedPage("app.html", app.user_friendly_name or app.name, "apps", (Crumb("apps", "Apps"),), values)

    @post("/apps/{name}/settings", "app_settings", form="app", edits=True)
    async def set_app(self, request: web.Request) -> web.Response:
        admit(request, Role.OPERATOR)
        applications, fields = self._services.store.applications, await fields_of(request)
        app = await applications.app(checked_app_name(request.match_info["name"]))
        changes = changed_in(fields, app)
        if not changes:
            return self._services.go(f"apps/{app.name}", "unchanged")
        await change_app(applications, app.name, **changes)
        told = {**changes, "was": {name: getattr(app, name) for name in changes}}
        await self._services.authenticator.note(request, "set_app", f"app {app.name}", **told)
        return self._services.go(f"apps/{app.name}", "version")

    @get("/apps/{name}/versions/{id}", "app_version", asks=("state",))
    async def version(self, request: web.Request) -> RenderedPage:
        """Show a version with its files, and the forms that change its state."""
        app, version, catalogue = await self._known(request)
        name = app.name
        store, now = self._services.store, self._services.clock.now()
        failed = await store.repeating.failures_of_version(
            version.app_version_id, since=later(now, -FAILED_WITHIN_S), limit=MOST_ERRORS, stderr_chars=TAIL_CHARS
        )
        errors = groups_of(failed)[:MOST_GROUPS]
        failing = await self._attention.failing_versions(await restrictions_of(store))
        fails = {one.app_version_id: one.words for one in failing}
        may = admit(request, Role.VIEWER).may(Role.OPERATOR)
        platforms = await self._attention.platforms() if may else {}
        harder = list(ENDINGS)[[*ENDINGS].index(version.state) + 1 if version.state in ENDINGS else 0 :]
        values: dict[str, object] = {
            "name": name,
            "version": version,
            "is_current": version in catalogue.current.get(version.app_id, ()),
            "without": withdrawal_of(version, catalogue, platforms, failing),
            **await self._open_work(app),
            "endings": [(state.value, ENDINGS[state]) for state in harder],
            "may": may,
            "chosen": request.query.get("state"),
            "fails": fails.get(version.app_version_id, ""),
            "errors": errors,
            "failures": len(failed),
            "of_batches": (of_batches := Counter(one.batch_id for one in failed).most_common(MOST_NAMED)),
            "of_one": bool(failed) and of_batches[0][1] >= NEARLY_ALL * len(failed),
            "batch_names": await store.listings.names([one for one, _ in of_batches]) if of_batches else {},
            "most_errors": MOST_ERRORS if len(failed) == MOST_ERRORS else 0,
            "version_in_words": version_in_words,
            "example_in_words": example_in_words,
        }
        if version.state is not VersionState.OFFERED:
            values |= await self._withdrawn(version, may=may)
        if may:
            subject = f"app version {version.app_version_id}"
            values |= await changes_of(self._services, subject, since=version.created_at)
        crumbs = (Crumb("apps", "Apps"), Crumb(f"apps/{name}", name))
        hosts = await self._services.host_names(HostId(one["example"]["host_id"]) for one in errors)
        return RenderedPage("app_version.html", version.title, "apps", crumbs, values, hosts=hosts)

    @post("/apps/{name}/versions/{id}", "app_version_state", edits=True)
    async def set_state(self, request: web.Request) -> RenderedPage | web.Response:
        """Change the state and return to the version. Ask first if hosts would lose work."""
        admit(request, Role.OPERATOR)
        app, version, _ = await self._known(request)
        fields = await fields_of(request)
        state, why = chosen(VersionState, fields.get("state", ""), "state"), reason_of(fields)
        if state is VersionState.ABORTED and not fields.get("sure"):
            return await self._abort_asked(app, version, why)
        await self._services.store.applications.set_version_state(version.app_version_id, state)
        target = f"app version {version.app_version_id}"
        await self._services.authenticator.note(
            request, "set_app_version", target, state=state.value, was={"state": version.state.value}, why=why
        )
        return self._services.go(f"apps/{app.name}/versions/{version.app_version_id}", f"version_{state.value}")

    async def _abort_asked(self, app: App, version: AppVersion, why: str) -> RenderedPage:
        """Ask for confirmation, showing what would be lost."""
        in_progress, hosts = await self._services.store.applications.in_progress_of_version(version.app_version_id)
        address = f"apps/{app.name}/versions/{version.app_version_id}"
        crumbs = Crumb("apps", "Apps"), Crumb(f"apps/{app.name}", app.name), Crumb(address, version.title)
        values: dict[str, object] = {
            "address": address,
            "state": VersionState.ABORTED.value,
            "why": why,
            "in_progress": in_progress,
            "hosts": hosts,
        }
        return RenderedPage("version_abort.html", "Withdraw this version?", "apps", crumbs, values)

    async def _withdrawn(self, version: AppVersion, *, may: bool) -> dict[str, object]:
        """Return what hosts did with a version that gets no jobs and, for operators, what is still in progress."""
        applications, number = self._services.store.applications, version.app_version_id
        used = await applications.use_of_versions(version.app_id, since=version.created_at)
        left, hosts = await applications.in_progress_of_version(number) if may else (0, 0)
        use = VersionRow(version, current=False, use=used.get(number, VersionUse(number)), failures=NO_FAILURES)
        return {"used": use, "left": left, "left_hosts": hosts}

    async def _open_work(self, app: App) -> dict[str, object]:
        """Return the unsent instances of an app, those in progress, and the first active batches with unsent ones."""
        listings = self._services.store.listings
        work = [one for one in await listings.totals() if one.app == app.name]
        active = BatchChoice(state=BatchState.ACTIVE, app_id=app.app_id)
        found = await listings.batches(active, BatchSort.ORDER, after=None, limit=MOST_BATCHES)
        return {
            "unsent": sum(one.unsent for one in work),
            "in_progress": sum(one.in_progress for one in work),
            "waiting": [one.batch for one in found if one.batch.counts.unsent],
            "is_cut": len(found) == MOST_BATCHES,
        }

    async def _known(self, request: web.Request) -> tuple[App, AppVersion, Catalogue]:
        """Return the app, the version in the address, and the catalogue.

        Raises InvalidInputError, NotFoundError.
        """
        app = await self._services.store.applications.app(checked_app_name(request.match_info["name"]))
        number = AppVersionId(id_of(request, LARGEST_INT))
        catalogue = await self._services.store.applications.load_catalogue()
        version = catalogue.versions.get(number)
        if version is None or version.app_id != app.app_id:
            raise NotFoundError("app version", number)
        return app, version, catalogue
