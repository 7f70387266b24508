"""The attach flow: web RPCs that a client sends while its user joins the project (docs/protocol.md).

All replies have HTTP status 200, including errors, because the client reads the error number in the body.
"""

from __future__ import annotations

import asyncio

import structlog
from aiohttp import web

from administration.access.sign_in import PASSWORD_HASH, SignIn, address_of
from administration.access.who import TooManyAttemptsError, WrongPasswordError
from administration.accounts import AccountKeys, add_volunteer, checked_email
from administration.catalogue import CatalogueCache
from domain.clock import Clock
from domain.errors import AlreadyExistsError, InvalidInputError, NotFoundError, UnavailableError
from store.people import PostgresVolunteers
from wire import attach

STRETCHES_AT_ONCE = 2  # hashing a new password takes tens of ms and 16 MiB, so further requests wait

log = structlog.get_logger()


class AttachFlow:
    """Handles the web RPCs."""

    def __init__(
        self,
        volunteers: PostgresVolunteers,
        signing: SignIn,
        keys: AccountKeys,
        catalogue: CatalogueCache,
        clock: Clock,
    ) -> None:
        self._volunteers = volunteers
        self._signing = signing
        self._keys = keys
        self._catalogue = catalogue
        self._clock = clock
        self._stretching = asyncio.Semaphore(STRETCHES_AT_ONCE)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/get_project_config.php", self.project_config),
            web.get("/lookup_account.php", self.lookup_account),
            web.get("/create_account.php", self.create_account),
        ]

    async def project_config(self, request: web.Request) -> web.Response:
        catalogue = self._catalogue.catalogue()
        project = catalogue.settings.project
        platforms = {version.platform for versions in catalogue.current.values() for version in versions}
        config = attach.ProjectConfig(project.name, project.url, project.min_password_length, tuple(sorted(platforms)))
        return _xml(attach.encode_project_config(config))

    async def lookup_account(self, request: web.Request) -> web.Response:
        """Return the account key for an e-mail address and the client's password hash."""
        try:
            email = checked_email(request.query.get("email_addr", ""))
        except InvalidInputError:
            return _error(attach.ERROR_NO_SUCH_ACCOUNT, "No account with that email")
        return await self._account(request, email, attach.ERROR_BAD_PASSWORD, "Wrong password")

    async def create_account(self, request: web.Request) -> web.Response:
        """Create an account and return its key. If the address already has an account and the password is right, return
        that account's key.
        """
        if not self._catalogue.catalogue().settings.project.account_creation:
            return _error(attach.ERROR_ACCOUNT_EXISTS, "This project does not accept new accounts at the moment")
        email, password = request.query.get("email_addr", ""), request.query.get("passwd_hash", "").lower()
        if not PASSWORD_HASH.fullmatch(password):
            return _error(attach.ERROR_BAD_PASSWORD, "passwd_hash: expected 32 hexadecimal digits")
        name = request.query.get("user_name", "")
        try:
            async with self._stretching:
                account = await add_volunteer(
                    self._volunteers, self._keys, email, name=name, password_hash=password, now=self._clock.now()
                )
        except InvalidInputError as error:
            return _error(attach.ERROR_BAD_EMAIL, str(error))
        except AlreadyExistsError:
            because = "An account with that email exists"
            return await self._account(request, email.lower(), attach.ERROR_ACCOUNT_EXISTS, because)
        except UnavailableError as error:
            return _down(error)
        return _xml(attach.encode_account(account.authenticator))

    async def _account(self, request: web.Request, email: str, wrong: int, because: str) -> web.Response:
        """Return the account key if the client's password hash is right, otherwise the error `wrong`."""
        hashed = request.query.get("passwd_hash", "").lower()
        try:
            record = await self._signing.check_client(email, hashed, address=address_of(request))
        except NotFoundError:
            return _error(attach.ERROR_NO_SUCH_ACCOUNT, "No account with that email")
        except WrongPasswordError:
            return _error(wrong, because)
        except TooManyAttemptsError as error:
            return _error(attach.ERROR_PROJECT_DOWN, str(error))
        except UnavailableError as error:
            return _down(error)
        return _xml(attach.encode_account(self._keys.authenticator(record.credentials.authenticator_nonce)))


def _xml(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="text/xml", charset="utf-8")


def _error(number: int, message: str) -> web.Response:
    return _xml(attach.encode_error(number, message))


def _down(error: UnavailableError) -> web.Response:
    log.warning("attach request failed", why=str(error))
    return _error(attach.ERROR_PROJECT_DOWN, "The project is temporarily unavailable")
