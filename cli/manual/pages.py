"""Which pages of the reference are made, and from what. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from api.document import openapi
from cli.main import muster
from cli.manual.commands import commands_page
from cli.manual.messages import messages_page, routes_of_the_api
from cli.manual.schema import schema_page
from cli.manual.settings import settings_page
from store.migrate import migrations


def _messages() -> str:
    return messages_page(openapi(routes_of_the_api(), title="Muster's API", version="", url="/api/v1"))


PAGES: Mapping[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "commands.md": lambda: commands_page(muster),
    "messages.md": _messages,
    "schema.md": lambda: schema_page("".join(migration.sql() for migration in migrations())),
}
