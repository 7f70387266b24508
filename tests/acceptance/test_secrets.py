"""No credentials appear in a log or on an error page, after any error."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from io import StringIO

import pytest
import structlog

from administration.access.authentication import PERSON_COOKIE, VOLUNTEER_COOKIE
from administration.accounts import AccountKeys
from domain.access import Role
from domain.units import Seconds
from runtime.logs import configure_logs
from tests.acceptance.host import Host
from tests.acceptance.server import LiveServer
from tests.acceptance.test_access import a_person, a_token
from transfer.keys import load_keys
from wire.client import encode_request

WRONG_KEY, WRONG_TOKEN, WRONG_PASSWORD = "f0" * 16, "e1" * 32, "Wrong-Horse-7"
RIGHT_PASSWORD, PASSWORD_HASH = "ola knows this", "d2" * 16
TABLES = ("volunteer", "person", "api_token", "upload", "web_session")  # addresses requested with secrets


class Heard:
    """Collects error pages."""

    def __init__(self, server: LiveServer) -> None:
        self._server = server
        self.pages: list[str] = []
        self.statuses: list[int] = []

    async def ask(self, method: str, path: str, **arguments: object) -> str:
        """Return the reply's body, and keep it if it is an error; ignores cookies and redirects."""
        url = f"{self._server.url}{path}"
        asked = self._server.http.request(method, url, allow_redirects=False, **arguments)  # type: ignore[arg-type]  # aiohttp's
        async with asked as response:
            text = await response.text(errors="replace")
            self.statuses.append(response.status)
            if response.status >= 400 or "<error" in text:
                self.pages.append(f"{response.headers} {text}")
            return text


@pytest.fixture
def log() -> Iterator[StringIO]:
    """Return what a process logs at the most verbose level."""
    written = StringIO()
    configure_logs("debug")
    structlog.configure(logger_factory=structlog.WriteLoggerFactory(written))
    yield written
    structlog.reset_defaults()


async def everything_is_asked(heard: Heard, host: Host, secrets: dict[str, str]) -> None:
    """Send every kind of secret to every place that takes one, valid and invalid."""
    for key in (secrets["account key"], WRONG_KEY):
        await heard.ask(
            "POST", "scheduler", data=encode_request(host.request(authenticator=key, cpu_req_s=Seconds(1.0)))
        )
        await heard.ask("POST", "scheduler", data=encode_request(host.request(authenticator=key))[:-30])
    for path in ("lookup_account.php", "create_account.php"):
        for password in (PASSWORD_HASH, WRONG_KEY):
            query = {"email_addr": "eve@example.org", "passwd_hash": password, "user_name": "Eve"}
            await heard.ask("GET", path, params=query)
    for token in (secrets["API token"], secrets["project token"], WRONG_TOKEN):
        for method, path in (
            ("GET", "me"),
            ("PUT", "settings/deadline.p_tight"),
            ("POST", "batches"),
            ("GET", "nowhere"),
        ):
            headers = {"Authorization": f"Bearer {token}"}
            await heard.ask(method, f"api/v1/{path}", headers=headers, data=b'{"value": ')
            await heard.ask(method, f"api/v1/{path}?token={token}", json={"app": "none", "token": token})
    for area, name in (("console", "name"), ("volunteers", "email")):
        for password in (RIGHT_PASSWORD, WRONG_PASSWORD):
            form = {name: "ola", "password": password, "csrf": WRONG_TOKEN}
            await heard.ask("POST", f"{area}/sign-in", data=form)
    for session in (secrets["session"], WRONG_TOKEN):
        for cookie, area in (
            (PERSON_COOKIE, "console/"),
            (VOLUNTEER_COOKIE, "volunteers/"),
            (PERSON_COOKIE, "api/v1/me"),
        ):
            await heard.ask("GET", area, headers={"Cookie": f"{cookie}={session}"})
        headers = {"Cookie": f"{PERSON_COOKIE}={session}", "X-CSRF-Token": WRONG_TOKEN}
        await heard.ask("PUT", "api/v1/settings/deadline.p_tight", json={"value": 0.7}, headers=headers)


async def test_no_secret_is_in_a_log_or_on_an_error_page(
    server: LiveServer, log: StringIO, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await server.add_app()
    await a_person(server, "ola", Role.OPERATOR)
    host = await server.add_host()
    await server.submit(jobs={"count": 4})
    [task] = await host.ask()
    keys = load_keys(server.project.keys_dir)
    signed_in = await server.workers[0].parts.authenticator.signing.person(
        "ola", RIGHT_PASSWORD, address="::1", agent="Browser"
    )
    secrets = {
        "account key": host.authenticator,
        "upload token": next(iter(task.tokens.values())),
        "API token": await a_token(server, "ola"),
        "project token": AccountKeys(keys.account_secret).api_token(),
        "session": signed_in.value,
        "account secret": keys.account_secret.hex(),
        "upload secret": keys.upload_secret.hex(),
        "password": RIGHT_PASSWORD,
        "hash of a password": PASSWORD_HASH,
        "wrong account key": WRONG_KEY,
        "wrong token": WRONG_TOKEN,
        "wrong password": WRONG_PASSWORD,
    }
    heard = Heard(server)

    async def bring(content: bytes) -> None:
        for changes in ({}, {"token": WRONG_TOKEN}, {"md5": "0" * 32}, {"offset": 5, "token": secrets["upload token"]}):
            await host.upload(task, content, **changes)

    await everything_is_asked(heard, host, secrets)
    await bring(b"3.14")
    database = server.store.submissions._database
    async with database.transaction() as connection:
        for table in TABLES:
            await connection.execute(f"ALTER TABLE {table} RENAME TO {table}_away")
    await everything_is_asked(heard, host, secrets)
    await heard.ask("POST", "upload", data=b"<data_server_request>" + secrets["upload token"].encode())
    async with database.transaction() as connection:
        for table in TABLES:
            await connection.execute(f"ALTER TABLE {table}_away RENAME TO {table}")

    said = {"the log": log.getvalue() + caplog.text, "an error page": "\n".join(heard.pages)}
    assert {400, 401, 403, 404, 500} <= set(heard.statuses)
    assert sum(json.loads(line)["level"] == "error" for line in log.getvalue().splitlines()) >= 5
    assert len(heard.pages) > 50
    assert [(name, where) for name, secret in secrets.items() for where, text in said.items() if secret in text] == []
