"""The volunteer's own account: password, and consent to the public statistics."""

from __future__ import annotations

from aiohttp import web

from administration.access.who import WrongPasswordError, the_volunteer
from domain.errors import MusterError
from portal.services import PortalServices, told
from web.handlers import Pages, fields_of, get, post
from web.rendering import RenderedPage
from web.sign_in import new_password, status_of


class AccountPages(Pages[PortalServices]):
    """The account page and its forms."""

    @get("/account", "account")
    async def account(self, request: web.Request) -> RenderedPage:
        return await self._account(request, None)

    @post("/account", "account_post")
    async def change_password(self, request: web.Request) -> RenderedPage | web.Response:
        the_volunteer(request)
        wrong = await new_password(request, self._services.authenticator.change_volunteer_password)
        return self._services.go("account", "password") if wrong is None else await self._account(request, wrong)

    @post("/account/statistics", "statistics_post")
    async def choose_statistics(self, request: web.Request) -> web.Response:
        """Note the consent to the statistics export, or its withdrawal."""
        services, volunteer_id = self._services, the_volunteer(request).volunteer.volunteer_id
        consent_at = services.clock.now() if "export" in await fields_of(request) else None
        await services.store.participation.set_export_consent(volunteer_id, consent_at)
        return services.go("account", "statistics")

    async def _account(self, request: web.Request, wrong: MusterError | None) -> RenderedPage:
        record, project = the_volunteer(request), self._services.catalogue.settings.project
        volunteer_id = record.volunteer.volunteer_id
        values: dict[str, object] = {
            "email": record.email,
            "volunteer": record.volunteer,
            "own": await self._services.store.participation.participation(volunteer_id),
            "totals": await self._services.store.volunteer_views.totals(volunteer_id),
            "has_password": record.credentials.password_hash is not None,
            "least": project.min_password_length,
            "url": project.url,
            "wrong": "This is neither your current password nor your account key."
            if isinstance(wrong, WrongPasswordError)
            else told(wrong),
        }
        return RenderedPage("account.html", "Account", "account", values=values, status=status_of(wrong))
