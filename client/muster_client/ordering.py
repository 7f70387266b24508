"""Client methods for the order of batches, shares, grants and limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from muster_client import shapes
from muster_client.transport import IfMatch, Transport, part


class Ordering(Transport):
    async def order(self, *, limit: int = 100) -> shapes.PrioritiesShown:
        """Return `batches` in the order of the last ordering pass, with reasons, and the `unordered` batches."""
        found: shapes.PrioritiesShown = await self._call("GET", "priority", query={"limit": limit})
        return found

    async def priorities(self, *, limit: int = 100) -> list[shapes.PriorityShown]:
        """Return batches in the order of the last ordering pass, with the terms whose points add up to `total`."""
        return (await self.order(limit=limit))["batches"]

    async def priority(self, batch_id: int) -> shapes.PriorityShown:
        """Return a batch's place in the order, with reasons."""
        found: shapes.PriorityShown = await self._call("GET", f"batches/{batch_id}/priority")
        return found

    async def weights(self) -> shapes.WeightsShown:
        """Return the terms of the active policy with their weights."""
        found: shapes.WeightsShown = await self._call("GET", "priority/weights")
        return found

    async def preview_ordering(self, values: Mapping[str, object], *, limit: int = 50) -> shapes.OrderPreviewed:
        """Preview the batch order under these settings. Nothing is changed."""
        body = {"values": values, "limit": limit}
        found: shapes.OrderPreviewed = await self._call("POST", "priority/preview", body)
        return found

    async def set_ordering(
        self, values: Mapping[str, object], *, why: str, by: str = "api", if_match: IfMatch = None
    ) -> list[shapes.ChangeMade]:
        """Set the ordering policy and its weights; the audit trail records author and reason. Returns old and new
        values.
        """
        body = {"values": values, "why": why, "by": by}
        changed: list[shapes.ChangeMade] = (await self._call("PUT", "priority", body, if_match=if_match))["changed"]
        return changed

    async def fairshare(self) -> list[shapes.ShareShown]:
        """Return the tree of accounts and submitters with shares and decayed usage."""
        found: list[shapes.ShareShown] = (await self._call("GET", "fairshare"))["tree"]
        return found

    async def usage_windows(self) -> shapes.WindowsShown:
        """Return recent usage of users, groups, accounts and levels, compared with their targets."""
        found: shapes.WindowsShown = await self._call("GET", "fairshare/windows")
        return found

    async def usage_report(
        self,
        *,
        by: str = "account",
        first_day: str | None = None,
        last_day: str | None = None,
        account: str | None = None,
        submitter: str | None = None,
    ) -> shapes.UsageReported:
        """Return the usage of returned work from the first to the last day, by default of this month.

        `by`: account, submitter and one of day, week and month, with commas between them.
        """
        days = {"first_day": first_day, "last_day": last_day}
        query = {"by": by, **days, "account": account, "submitter": submitter}
        found: shapes.UsageReported = await self._call("GET", "usage", query=query)
        return found

    async def set_shares(
        self, kind: Literal["account", "submitter"], name: str, shares: float, *, account: str | None = None
    ) -> None:
        """Set the shares of an account or a submitter. With `account`, also let the submitter use that account."""
        await self._call("PUT", "fairshare", {"kind": kind, "name": name, "shares": shares, "account": account})

    async def reset_usage(self, *, why: str, submitter: str | None = None, account: str | None = None) -> int:
        """Reset the recorded usage of all or some submitters. Return the number of records changed. Grants are kept."""
        body = {"why": why, "submitter": submitter, "account": account}
        records: int = (await self._call("POST", "fairshare/reset", body))["records"]
        return records

    async def permit(self, kind: Literal["account", "submitter"], name: str, permissions: Sequence[str]) -> None:
        """Replace the permissions (expedite, raise) of an account or a submitter."""
        await self._call("PUT", "permissions", {"kind": kind, "name": name, "permissions": list(permissions)})

    async def emulate_fairshare(self, system: str, document: object) -> shapes.TableShown:
        """Compute fair-share for a tree as another system does: `columns` and `rows`, as that system prints them."""
        body = {"system": system, "document": document}
        found: shapes.TableShown = await self._call("POST", "fairshare/emulate", body)
        return found

    async def grants(self, *, limit: int | None = 1000) -> list[shapes.GrantShown]:
        """Return the service units of accounts: granted, used, reserved and left in this period."""
        return await self._list("grants", "grants", limit=limit)

    async def grant(self, account: str) -> shapes.GrantShown:
        """Return an account's grant."""
        found: shapes.GrantShown = await self._call("GET", f"grants/{part(account)}")
        return found

    async def set_grant(
        self, account: str, *, granted_su: float, period_s: float, if_match: IfMatch = None
    ) -> shapes.GrantShown:
        """Set an account's service units per period. Units already used in this period still count."""
        body = {"account": account, "granted_su": granted_su, "period_s": period_s}
        found: shapes.GrantShown = await self._call("PUT", "grants", body, if_match=if_match)
        return found

    async def take_grant(self, account: str, *, if_match: IfMatch = None) -> None:
        """Remove an account's grant, so that it no longer limits the account."""
        await self._call("DELETE", f"grants/{part(account)}", if_match=if_match)

    async def limits(self, *, limit: int | None = 1000) -> list[shapes.LimitShown]:
        """Return the limits on submitters, accounts, apps and queues."""
        return await self._list("limits", "limits", limit=limit)

    async def limit(self, scope: str, quantity: str, *, name: str | None = None) -> shapes.LimitShown:
        """Return the limit of one name, or the default limit."""
        path = f"limits/{part(scope)}/{part(quantity)}"
        found: shapes.LimitShown = await self._call("GET", path, query={"name": name})
        return found

    async def set_limit(
        self,
        scope: str,
        quantity: str,
        *,
        name: str | None = None,
        soft: float | None = None,
        hard: float | None = None,
        if_match: IfMatch = None,
    ) -> shapes.LimitShown:
        """Set a limit for one name, or the default for all names that have no limit of their own."""
        body = {"scope": scope, "quantity": quantity, "name": name, "soft": soft, "hard": hard}
        found: shapes.LimitShown = await self._call("PUT", "limits", body, if_match=if_match)
        return found

    async def lift_limit(self, scope: str, quantity: str, *, name: str | None = None, if_match: IfMatch = None) -> None:
        """Remove the limit for one name, or the default limit."""
        await self._call("DELETE", f"limits/{part(scope)}/{part(quantity)}", query={"name": name}, if_match=if_match)
