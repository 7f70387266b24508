"""The volunteer's own account: password, e-mail address, preferences, statistics, deletion, new password by mail."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from typing import Any

from aiohttp import web

from administration.access.sign_in import address_of, hash_of, network_of
from administration.access.who import TooManyAttemptsError, WrongPasswordError, the_volunteer
from administration.accounts import checked_email, is_account_key
from administration.mail import Mailer
from administration.volunteers import MOST, choice_of, preferring
from domain.errors import AlreadyExistsError, ConflictError, InvalidInputError, MusterError, NotFoundError
from domain.units import AppId, Instant, later
from domain.volunteers import Volunteer
from portal.addresses import CODE_S, MAILS_AT_ONCE, MAILS_PER_S, AddressChanges
from portal.services import PortalServices, apps_offered, title_of, told
from web.handlers import LARGEST_INT, Fields, Pages, fields_of, get, number_of, post, whole_number
from web.rate_limit import Buckets
from web.rendering import RenderedPage
from web.sign_in import REFUSED, new_password, status_of
from wire.attach import password_hash

FORGOTTEN = """Hello,

a new password was requested for your account at {project}. To choose it, open this address within an hour:

{url}volunteers/reset?code={code}

If you did not request it, ignore this message. Your password then stays the same.
"""
NEVER = "never"


class AccountPages(Pages[PortalServices]):
    """The account page and its forms."""

    def __init__(self, services: PortalServices, addresses: AddressChanges) -> None:
        super().__init__(services)
        self._addresses = addresses
        self._mailer = Mailer(lambda: services.catalogue.settings.mail)
        self._asked = Buckets(services.clock)

    @get("/account", "account")
    async def account(self, request: web.Request) -> RenderedPage:
        return await self._account(request, "", None)

    @post("/account", "account_post")
    async def change_password(self, request: web.Request) -> RenderedPage | web.Response:
        the_volunteer(request)
        wrong = await new_password(request, self._services.authenticator.change_volunteer_password)
        if wrong is not None:
            return await self._account(request, "password", wrong)
        return self._services.go("account", "password")

    @post("/account/email", "email_post")
    async def change_email(self, request: web.Request) -> RenderedPage | web.Response:
        """Change the address. The password is needed, because its stored hash depends on the address."""
        record, fields = the_volunteer(request), await fields_of(request)
        signing, password = self._services.authenticator.signing, fields.get("password", "")
        try:
            email = checked_email(fields.get("email", "").strip())
            if is_account_key(record, password):
                raise InvalidInputError("password", "your password, not the account key", "the account key")
            checked = await signing.check_volunteer(record.email, password, address=address_of(request))
            is_changed = await self._addresses.change(checked, email, password_hash(password, email))
        except (*REFUSED, AlreadyExistsError) as error:
            return await self._account(request, "email", error)
        return self._services.go("account", "email" if is_changed else "verify")

    @get("/verify", "verify", asks=("code",))
    async def verify(self, request: web.Request) -> RenderedPage:
        """Show the form of the link that was sent to a new address: programs that check links must not use it up."""
        return self._verify(request.query.get("code", ""), None)

    @post("/verify", "verify_post")
    async def use_new_address(self, request: web.Request) -> RenderedPage | web.Response:
        code = (await fields_of(request)).get("code", "")
        try:
            await self._addresses.verify(code)
        except (ConflictError, AlreadyExistsError, NotFoundError) as error:
            return self._verify(code, error)
        return self._services.go("sign-in", "email")

    def _verify(self, code: str, wrong: MusterError | None) -> RenderedPage:
        values = {"wrong": told(wrong), "code": code}
        return RenderedPage("verify.html", "Confirm your address", "-", values=values, status=status_of(wrong))

    @post("/account/statistics", "statistics_post")
    async def choose_statistics(self, request: web.Request) -> web.Response:
        """Record that the volunteer consents to the statistics export, or withdraws the consent."""
        services, volunteer_id = self._services, the_volunteer(request).volunteer.volunteer_id
        consent_at = services.clock.now() if "export" in await fields_of(request) else None
        await services.store.participation.set_export_consent(volunteer_id, consent_at)
        return services.go("account", "statistics")

    @post("/account/delete", "delete_post")
    async def delete(self, request: web.Request) -> RenderedPage | web.Response:
        """Delete the account's personal data, once the password has been given again."""
        services, record = self._services, the_volunteer(request)
        password = (await fields_of(request)).get("password", "")
        try:
            signing = services.authenticator.signing
            await signing.check_volunteer(record.email, password, address=address_of(request))
        except REFUSED as error:
            return await self._account(request, "delete", error)
        response = services.go("join", "deleted")
        await services.authenticator.sign_out(request, response)
        await services.store.participation.forget_volunteer(
            record.volunteer.volunteer_id, secrets.token_bytes(32), now=services.clock.now()
        )
        return response

    # ------------------------------------------------------------------ a forgotten password

    @get("/forgotten", "forgotten")
    async def forgotten(self, request: web.Request) -> RenderedPage:
        return self._forgotten(None)

    @post("/forgotten", "forgotten_post")
    async def send_code(self, request: web.Request) -> RenderedPage | web.Response:
        """Send a code by mail. The reply does not show whether the account exists."""
        services, project = self._services, self._services.catalogue.settings.project
        try:
            email = checked_email((await fields_of(request)).get("email", "").strip())
            for key in (network_of(address_of(request)), email):
                if wait_s := self._asked.wait_s(key, per_s=MAILS_PER_S, burst=MAILS_AT_ONCE):
                    raise TooManyAttemptsError(wait_s, "mail was requested")
        except (InvalidInputError, TooManyAttemptsError) as error:
            return self._forgotten(error)
        record, now = await services.store.volunteers.volunteer_by_email(email), services.clock.now()
        if record is not None and self._mailer.is_on:
            code, volunteer_id = secrets.token_urlsafe(32), record.volunteer.volunteer_id
            expires_at = later(now, CODE_S)
            await services.store.volunteers.add_mail_code(hash_of(code), volunteer_id, expires_at=expires_at, now=now)
            text = FORGOTTEN.format(project=project.name, url=project.url, code=code)
            self._mailer.send_later(email, f"{project.name}: a new password", text)
        return services.go("sign-in", "mailed")

    @get("/reset", "reset", asks=("code",))
    async def reset(self, request: web.Request) -> RenderedPage:
        return self._reset(request.query.get("code", ""), None)

    @post("/reset", "reset_post")
    async def choose_password(self, request: web.Request) -> RenderedPage | web.Response:
        """Set the password of the account to which the code was sent."""
        services, fields = self._services, await fields_of(request)
        code, least = fields.get("code", ""), services.catalogue.settings.project.min_password_length
        try:
            password = _same_twice(fields, least)
            found = await services.store.volunteers.take_mail_code(hash_of(code), now=services.clock.now())
            if found is None:
                raise ConflictError("this link was used already or has expired: request another one")
            record = await services.store.volunteers.volunteer(found.volunteer_id)
            await services.authenticator.signing.change_volunteer_password(record, password, least=least)
        except (InvalidInputError, ConflictError, NotFoundError) as error:
            return self._reset(code, error)
        return services.go("sign-in", "reset")

    def _forgotten(self, wrong: MusterError | None) -> RenderedPage:
        values = {"wrong": told(wrong), "on": self._mailer.is_on}
        return RenderedPage("forgotten.html", "Forgotten password", "-", values=values, status=status_of(wrong))

    def _reset(self, code: str, wrong: MusterError | None) -> RenderedPage:
        least = self._services.catalogue.settings.project.min_password_length
        values = {"wrong": told(wrong), "code": code, "least": least}
        return RenderedPage("reset.html", "Choose a new password", "-", values=values, status=status_of(wrong))

    async def _account(self, request: web.Request, form: str, wrong: MusterError | None) -> RenderedPage:
        """Return the account page, with the error from one of its forms."""
        record, project = the_volunteer(request), self._services.catalogue.settings.project
        store, volunteer_id = self._services.store, record.volunteer.volunteer_id
        values: dict[str, object] = {
            "email": record.email,
            "volunteer": record.volunteer,
            "own": await store.participation.participation(volunteer_id),
            "totals": await store.volunteer_views.totals(volunteer_id),
            "has_password": record.credentials.password_hash is not None,
            "least": project.min_password_length,
            "url": project.url,
            "form": form,
            "wrong": "This is neither your current password nor your account key."
            if isinstance(wrong, WrongPasswordError)
            else told(wrong),
        }
        return RenderedPage("account.html", "Account", "account", values=values, status=status_of(wrong))


def _same_twice(fields: Fields, least: int) -> str:
    """Return the new password. Raises InvalidInputError if it is too short or its two entries differ."""
    password = fields.get("new", "")
    if password != fields.get("again"):
        raise InvalidInputError("password", "the same new password twice", "two different passwords")
    if len(password) < least:
        raise InvalidInputError("password", f"at least {least} characters", f"{len(password)}")
    return password


def wishes_of(fields: Fields, chosen: Sequence[str], offered: Collection[AppId]) -> dict[str, Any]:
    """Parse the form for `preferring`. Raises InvalidInputError.

    >>> wishes_of({"which": "some", "cpu": "on", "gpu": "on"}, ["2"], {1, 2})["apps"]
    (2,)
    >>> wishes_of({"which": "all", "cpu": "on", "max_jobs": "3"}, [], {1, 2})
    {'beta': False, 'no_cpu': False, 'no_gpu': True, 'max_jobs': 3, 'max_cpus': 0, 'apps': ()}
    """
    apps: tuple[AppId, ...] = ()
    if fields.get("which") == "some":
        apps = tuple(AppId(whole_number(one, "app", 1, LARGEST_INT)) for one in chosen)
        if not apps:
            raise InvalidInputError("apps", "at least one application, or all of them", "none")
    return {
        "beta": "beta" in fields,
        "no_cpu": "cpu" not in fields,
        "no_gpu": "gpu" not in fields,
        "max_jobs": _whole(fields, "max_jobs"),
        "max_cpus": _whole(fields, "max_cpus"),
        "apps": choice_of(apps, offered),
    }


def _whole(fields: Fields, name: str) -> int:
    """Parse an integer; an empty field means 0, no limit."""
    value = number_of(fields, name, low=0, high=MOST) or 0.0
    if value != int(value):
        raise InvalidInputError(name, f"a whole number from 0 to {MOST}", fields[name])
    return int(value)


def known_at_of(fields: Fields) -> Instant | None:
    """Return the time of the latest change that the user had seen."""
    text = fields.get("known_at", NEVER)
    try:
        return None if text == NEVER else Instant(float(text))
    except ValueError:
        raise InvalidInputError("known_at", "the hidden field's original value", text) from None


class PreferencePages(Pages[PortalServices]):
    """Pages for preferences: applications, processors and limits."""

    @get("/preferences", "preferences")
    async def ask(self, request: web.Request) -> RenderedPage:
        return self._form(the_volunteer(request).volunteer, None)

    @post("/preferences", "preferences_post", edits=True)
    async def save(self, request: web.Request) -> RenderedPage | web.Response:
        """Save the form, unless the preferences changed after it was loaded."""
        services, volunteer = self._services, the_volunteer(request).volunteer
        sent = await request.post()
        fields = {name: value for name, value in sent.items() if isinstance(value, str)}
        chosen = [value for value in sent.getall("app", []) if isinstance(value, str)]
        try:
            if known_at_of(fields) != volunteer.preferred_at:
                raise ConflictError(CHANGED)
            wishes = wishes_of(fields, chosen, {app.app_id for app in apps_offered(services.catalogue)})
            wanted = preferring(volunteer, now=services.clock.now(), known=services.catalogue.apps, **wishes)
            if wanted is not volunteer:
                await services.store.volunteers.set_volunteer(wanted, instead_of=volunteer)
        except (InvalidInputError, ConflictError) as error:
            return self._form(volunteer, error)
        return services.go("preferences", "preferences")

    def _form(self, volunteer: Volunteer, wrong: MusterError | None) -> RenderedPage:
        offered = apps_offered(self._services.catalogue)
        values: dict[str, object] = {
            "volunteer": volunteer,
            "apps": [(app, title_of(app), not volunteer.apps or app.app_id in volunteer.apps) for app in offered],
            "known_at": NEVER if volunteer.preferred_at is None else repr(volunteer.preferred_at),
            "most": MOST,
            "wrong": told(wrong),
        }
        status = 200 if wrong is None else 409 if isinstance(wrong, ConflictError) else 422
        return RenderedPage("preferences.html", "Preferences", "preferences", values=values, status=status)


CHANGED = "your preferences were changed elsewhere in the meantime; the current ones are shown below"
