"""The order of batches, shares, grants and limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from muster_client import shapes
from muster_client.transport import Transport, part


class Ordering(Transport):
    async def order(self, *, limit: int = 100) -> shapes.PrioritiesShown:
        """`batches` in their order with the reasons of the last ordering, and those `unordered` until the next."""
        found: shapes.PrioritiesShown = await self._call("GET", "priority", query={"limit": limit})
        return found

    async def priorities(self, *, limit: int = 100) -> list[shapes.PriorityShown]:
        """Batches in their order with the reasons of the last ordering: terms whose points sum to `total`."""
        return (await self.order(limit=limit))["batches"]

    async def priority(self, batch_id: int) -> shapes.PriorityShown:
        """Why one batch stands where it stands."""
        found: shapes.PriorityShown = await self._call("GET", f"batches/{batch_id}/priority")
        return found

    async def weights(self) -> shapes.WeightsShown:
        """The terms of the chosen policy with their weights."""
        found: shapes.WeightsShown = await self._call("GET", "priority/weights")
        return found

    async def preview_ordering(self, values: Mapping[str, object], *, limit: int = 50) -> shapes.OrderPreviewed:
        """Where batches would stand with these ordering settings; nothing is changed."""
        body = {"values": values, "limit": limit}
        found: shapes.OrderPreviewed = await self._call("POST", "priority/preview", body)
        return found

    async def set_ordering(self, values: Mapping[str, object], *, why: str, by: str = "api") -> list[shapes.ChangeMade]:
        """Choose and weigh the policy, with who and why in the audit trail; what was changed, from what to what."""
        body = {"values": values, "why": why, "by": by}
        changed: list[shapes.ChangeMade] = (await self._call("PUT", "priority", body))["changed"]
        return changed

    async def fairshare(self) -> list[shapes.ShareShown]:
        """The tree of accounts and submitters with shares, decayed usage and standings."""
        found: list[shapes.ShareShown] = (await self._call("GET", "fairshare"))["tree"]
        return found

    async def set_shares(
        self, kind: Literal["account", "submitter"], name: str, shares: float, *, account: str | None = None
    ) -> None:
        """The shares of an account or a submitter; `account` lets a submitter submit there too, with these shares."""
        await self._call("PUT", "fairshare", {"kind": kind, "name": name, "shares": shares, "account": account})

    async def permit(self, kind: Literal["account", "submitter"], name: str, permissions: Sequence[str]) -> None:
        """What all in an account, or a submitter, may do, instead of what they might: expedite, raise."""
        await self._call("PUT", "permissions", {"kind": kind, "name": name, "permissions": list(permissions)})

    async def emulate_fairshare(self, system: str, document: object) -> shapes.TableShown:
        """What another system's fair-share says of a tree: `columns` and `rows`, as printed."""
        body = {"system": system, "document": document}
        found: shapes.TableShown = await self._call("POST", "fairshare/emulate", body)
        return found

    async def grants(self, *, limit: int | None = 1000) -> list[shapes.GrantShown]:
        """Service units of accounts: granted, used, reserved and left in this period."""
        return await self._list("grants", "grants", limit=limit)

    async def set_grant(self, account: str, *, granted_su: float, period_s: float) -> shapes.GrantShown:
        """Grant an account service units per period; what this period used stays used."""
        body = {"account": account, "granted_su": granted_su, "period_s": period_s}
        found: shapes.GrantShown = await self._call("PUT", "grants", body)
        return found

    async def take_grant(self, account: str) -> None:
        """Take an account's grant: it is not limited by one any more."""
        await self._call("DELETE", f"grants/{part(account)}")

    async def limits(self, *, limit: int | None = 1000) -> list[shapes.LimitShown]:
        """How much submitters, accounts, apps and queues may have."""
        return await self._list("limits", "limits", limit=limit)

    async def set_limit(
        self,
        scope: str,
        quantity: str,
        *,
        name: str | None = None,
        soft: float | None = None,
        hard: float | None = None,
    ) -> shapes.LimitShown:
        """Limit one by name, or everybody who has no limit of its own."""
        body = {"scope": scope, "quantity": quantity, "name": name, "soft": soft, "hard": hard}
        found: shapes.LimitShown = await self._call("PUT", "limits", body)
        return found

    async def lift_limit(self, scope: str, quantity: str, *, name: str | None = None) -> None:
        """Lift the limit of one by name, or everybody's."""
        await self._call("DELETE", f"limits/{part(scope)}/{part(quantity)}", query={"name": name})
