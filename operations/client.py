"""A typed client of the JSON API, for users' own scripts; the package `muster` re-exports it.

async with muster.Client("http://127.0.0.1:8080/", token) as client:
    batch_id = await client.submit({"app": "double", "qos": "afap", "jobs": {...}})
    print(await client.batch(batch_id))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import urlencode

import aiohttp
import msgspec

from domain.errors import MusterError

ExplainedKind = Literal["host", "batch", "job", "instance"]

TIMEOUT_S = 600.0  # a batch of a million jobs is one request


class ApiError(MusterError):
    """The server refused. `status` is the HTTP status, `problem` the problem document."""

    def __init__(self, status: int, problem: Mapping[str, object]) -> None:
        self.status = status
        self.problem = problem
        super().__init__(str(problem.get("detail") or problem.get("title") or f"HTTP status {status}"))


class Client:
    """One project's API. Raises ApiError for every refusal."""

    def __init__(self, url: str, token: str) -> None:
        self._url = f"{url.rstrip('/')}/api/v1"
        self._headers = {"Authorization": f"Bearer {token}"}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(headers=self._headers, timeout=aiohttp.ClientTimeout(total=TIMEOUT_S))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def submit(self, batch: Mapping[str, object]) -> int:
        """Submit a batch: the keys of a batch file, inputs by the name of a registered file."""
        return int((await self._call("POST", "batches", batch))["batch_id"])

    async def preview(self, batch: Mapping[str, object]) -> dict[str, Any]:
        """When the batch would be done if it was submitted now: `q50_at`, `q90_at`, …. Nothing is written."""
        found: dict[str, Any] = (await self._call("POST", "batches?preview=true", batch))["forecast"]
        return found

    async def forecasts(self, batch_id: int, *, limit: int = 100) -> dict[str, Any]:
        """What is published of a batch, its `forecasts` in order of time, and how good its app's are (`accuracy`)."""
        return await self._call("GET", f"batches/{batch_id}/forecasts?limit={limit}")

    async def forecast_health(self) -> list[dict[str, Any]]:
        """How forecasting goes, app by app: ages of the last forecasts, coverage and error."""
        found: list[dict[str, Any]] = (await self._call("GET", "forecasts"))["apps"]
        return found

    async def batch(self, batch_id: int) -> dict[str, Any]:
        """A batch with its counters."""
        return await self._call("GET", f"batches/{batch_id}")

    async def batches(self, *, limit: int = 100, before: int | None = None) -> list[dict[str, Any]]:
        """Batches, newest first."""
        more = f"&before={before}" if before is not None else ""
        found: list[dict[str, Any]] = (await self._call("GET", f"batches?limit={limit}{more}"))["batches"]
        return found

    async def abort(self, batch_id: int) -> dict[str, Any]:
        """End a batch; returns it."""
        return await self._call("POST", f"batches/{batch_id}/abort")

    async def job(self, job_id: int) -> dict[str, Any]:
        """A job with its instances."""
        return await self._call("GET", f"jobs/{job_id}")

    async def explain(self, kind: ExplainedKind, identifier: int) -> dict[str, Any]:
        """The decision run dry: why a host gets no work, what holds a batch or job back, how a due date came about."""
        return await self._call("GET", f"explain/{kind}/{identifier}")

    async def thresholds(self) -> list[dict[str, Any]]:
        """Every threshold with its value, its effect, and who changed it last and why."""
        found: list[dict[str, Any]] = (await self._call("GET", "thresholds"))["thresholds"]
        return found

    async def preview_thresholds(self, values: Mapping[str, float]) -> dict[str, Any]:
        """What these values would do, by the hosts and the work of this moment; nothing is changed."""
        return await self._call("GET", f"thresholds/preview?{urlencode(values)}")

    async def set_thresholds(self, values: Mapping[str, object], *, why: str, by: str = "api") -> list[dict[str, Any]]:
        """Change thresholds, with who and why in the audit trail; what was changed, from what to what."""
        body = {"values": values, "why": why, "by": by}
        changed: list[dict[str, Any]] = (await self._call("PUT", "thresholds", body))["changed"]
        return changed

    async def priorities(self, *, limit: int = 100) -> list[dict[str, Any]]:
        """Batches in their order with the reasons of the last ordering: terms whose points sum to `total`."""
        found: list[dict[str, Any]] = (await self._call("GET", f"priority?limit={limit}"))["batches"]
        return found

    async def priority(self, batch_id: int) -> dict[str, Any]:
        """Why one batch stands where it stands."""
        return await self._call("GET", f"batches/{batch_id}/priority")

    async def set_batch(
        self, batch_id: int, *, user_priority: int | None = None, level: str | None = None, queue: str | None = None
    ) -> dict[str, Any]:
        """How important a batch is: user priority (-1024 to 0, to 1023 with a permission), service level, queue."""
        body = {"user_priority": user_priority, "level": level, "queue": queue}
        return await self._call("PATCH", f"batches/{batch_id}", body)

    async def preview_ordering(self, values: Mapping[str, object], *, limit: int = 50) -> dict[str, Any]:
        """Where batches would stand with these ordering settings; nothing is changed."""
        return await self._call("POST", "priority/preview", {"values": values, "limit": limit})

    async def set_ordering(self, values: Mapping[str, object], *, why: str, by: str = "api") -> list[dict[str, Any]]:
        """Choose and weigh the policy, with who and why in the audit trail; what was changed, from what to what."""
        body = {"values": values, "why": why, "by": by}
        changed: list[dict[str, Any]] = (await self._call("PUT", "priority", body))["changed"]
        return changed

    async def fairshare(self) -> list[dict[str, Any]]:
        """The tree of accounts and submitters with shares, decayed usage and standings."""
        found: list[dict[str, Any]] = (await self._call("GET", "fairshare"))["tree"]
        return found

    async def set_shares(
        self, kind: Literal["account", "submitter"], name: str, shares: float, *, account: str | None = None
    ) -> None:
        """The shares of an account or a submitter; `account` lets a submitter submit there too, with these shares."""
        await self._call("PUT", "fairshare", {"kind": kind, "name": name, "shares": shares, "account": account})

    async def permit(self, kind: Literal["account", "submitter"], name: str, permissions: Sequence[str]) -> None:
        """What all in an account, or a submitter, may do, instead of what they might: expedite, raise."""
        await self._call("PUT", "permissions", {"kind": kind, "name": name, "permissions": list(permissions)})

    async def emulate_fairshare(self, system: str, document: object) -> dict[str, Any]:
        """What another system's fair-share says of a tree: `columns` and `rows`, as printed."""
        return await self._call("POST", "fairshare/emulate", {"system": system, "document": document})

    async def grants(self) -> list[dict[str, Any]]:
        """Service units of accounts: granted, used, reserved and left in this period."""
        found: list[dict[str, Any]] = (await self._call("GET", "grants"))["grants"]
        return found

    async def set_grant(self, account: str, *, granted_su: float, period_s: float) -> dict[str, Any]:
        """Grant an account service units per period; what this period used stays used."""
        return await self._call("PUT", "grants", {"account": account, "granted_su": granted_su, "period_s": period_s})

    async def limits(self) -> list[dict[str, Any]]:
        """How much submitters, accounts, apps and queues may have."""
        found: list[dict[str, Any]] = (await self._call("GET", "limits"))["limits"]
        return found

    async def set_limit(
        self,
        scope: str,
        quantity: str,
        *,
        name: str | None = None,
        soft: float | None = None,
        hard: float | None = None,
    ) -> dict[str, Any]:
        """Limit one by name, or everybody who has no limit of its own."""
        body = {"scope": scope, "quantity": quantity, "name": name, "soft": soft, "hard": hard}
        return await self._call("PUT", "limits", body)

    async def _call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        assert self._session is not None, "use the client in an `async with`"
        data = msgspec.json.encode(body) if body is not None else None
        async with self._session.request(method, f"{self._url}/{path}", data=data) as response:
            content = await response.read()
            if response.status >= 400:
                raise ApiError(response.status, _document(content))
            return msgspec.json.decode(content, type=dict[str, Any])


def _document(content: bytes) -> dict[str, object]:
    try:
        return msgspec.json.decode(content, type=dict[str, object])
    except msgspec.DecodeError:
        return {"title": content[:200].decode(errors="replace")}
