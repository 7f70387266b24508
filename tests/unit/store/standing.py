"""An idle connection, for groups whose work does not use it."""

from __future__ import annotations

from typing import cast

from store.pool import DatabaseSession


class Standing:
    def is_closed(self) -> bool:
        return False

    def terminate(self) -> None:
        pass

    async def close(self, *, timeout: float) -> None:
        pass


async def stand(dsn: str) -> DatabaseSession:
    return cast("DatabaseSession", Standing())
