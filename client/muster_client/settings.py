"""Client methods for settings, thresholds, accounts, notifications and the audit trail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muster_client import shapes
from muster_client.transport import IfMatch, Transport, etag_of, part, tagged


class Administration(Transport):
    async def settings(self) -> dict[str, Any]:
        """Return the values of all settings by key."""
        found = await self._call("GET", "settings")
        return tagged(found["settings"], etag_of(found))

    async def setting(self, key: str) -> shapes.SettingShown:
        """Return a setting with its default and meaning."""
        found: shapes.SettingShown = await self._call("GET", f"settings/{part(key)}")
        return found

    async def setting_details(self) -> list[shapes.SettingShown]:
        """Return all settings with their defaults and meanings."""
        found: list[shapes.SettingShown] = (await self._call("GET", "settings"))["details"]
        return found

    async def set_setting(
        self, key: str, value: object, *, why: str = "", by: str = "api", if_match: IfMatch = None
    ) -> Any:
        """Change a setting and return the stored value. Services apply it within seconds. Thresholds need a reason."""
        return (
            await self._call("PUT", f"settings/{part(key)}", {"value": value, "why": why, "by": by}, if_match=if_match)
        )["value"]

    async def reset_setting(self, key: str, *, why: str = "", by: str = "api", if_match: IfMatch = None) -> Any:
        """Reset a setting to its default and return the default. Thresholds need a reason."""
        return (
            await self._call("DELETE", f"settings/{part(key)}", query={"why": why or None, "by": by}, if_match=if_match)
        )["value"]

    async def setting_changes(self, *, limit: int | None = 100) -> list[shapes.SettingChangeShown]:
        """Return setting changes with author, time and reason, newest first."""
        return await self._list("settings/changes", "changes", limit=limit)

    async def thresholds(self) -> list[shapes.ThresholdShown]:
        """Return all thresholds with their values, effects and last changes."""
        found: list[shapes.ThresholdShown] = (await self._call("GET", "thresholds"))["thresholds"]
        return found

    async def preview_thresholds(self, values: Mapping[str, object]) -> shapes.ThresholdsPreviewed:
        """Preview the effect of these values on hosts as of `hosts_read_at` and on waiting jobs; nothing is changed."""
        found: shapes.ThresholdsPreviewed = await self._call("GET", "thresholds/preview", query=values)
        return found

    async def set_thresholds(
        self, values: Mapping[str, object], *, why: str, by: str = "api", if_match: IfMatch = None
    ) -> list[shapes.ChangeMade]:
        """Change thresholds; the audit trail records author and reason. Returns old and new values."""
        body = {"values": values, "why": why, "by": by}
        changed: list[shapes.ChangeMade] = (await self._call("PUT", "thresholds", body, if_match=if_match))["changed"]
        return changed

    async def simulate_thresholds(
        self, values: Mapping[str, object], *, seeds: int = 3, hosts: int = 500, days: float = 14.0
    ) -> shapes.SimulationShown:
        """Simulate the project with its current thresholds and with these. `simulation` returns the progress."""
        body = {"values": values, "seeds": seeds, "hosts": hosts, "days": days}
        found: shapes.SimulationShown = await self._call("POST", "thresholds/simulations", body)
        return found

    async def simulation(self, simulation_id: int) -> shapes.SimulationShown:
        """Return the progress and result of a simulation."""
        found: shapes.SimulationShown = await self._call("GET", f"simulations/{simulation_id}")
        return found

    async def cancel_simulation(self, simulation_id: int) -> shapes.SimulationShown:
        """Cancel a simulation. A finished simulation stays unchanged."""
        found: shapes.SimulationShown = await self._call("POST", f"simulations/{simulation_id}/cancel")
        return found

    async def restrictions(self, *, limit: int | None = 1000) -> list[shapes.RestrictionShown]:
        """Return bans and limits of volunteers and hosts, and paused work, by kind and name."""
        return await self._list("restrictions", "restrictions", limit=limit)

    async def restriction(self, kind: str, name: str) -> shapes.RestrictionShown:
        """Return the ban or limit of a `volunteer` or `host`, or the pause of an `app`, `queue` or `batch`."""
        found: shapes.RestrictionShown = await self._call("GET", f"restrictions/{part(kind)}/{part(name)}")
        return found

    async def restrict(
        self, kind: str, name: str, *, why: str, max_jobs: int = 0, abort: bool = False, if_match: IfMatch = None
    ) -> shapes.RestrictionShown:
        """Ban a `volunteer` or `host`, or limit its jobs in progress per host; pause an `app`, `queue` or `batch`.

        `abort`: a ban ends the jobs in progress at once.
        """
        body = {"why": why, "max_jobs": max_jobs, "abort": abort}
        found: shapes.RestrictionShown = await self._call(
            "PUT", f"restrictions/{part(kind)}/{part(name)}", body, if_match=if_match
        )
        return found

    async def lift_restriction(self, kind: str, name: str, *, if_match: IfMatch = None) -> shapes.RestrictionLifted:
        """Lift a ban or limit, or resume paused work."""
        found: shapes.RestrictionLifted = await self._call(
            "DELETE", f"restrictions/{part(kind)}/{part(name)}", if_match=if_match
        )
        return found

    async def accounts(self, *, limit: int | None = 1000) -> list[shapes.AccountShown]:
        """Return accounts by id."""
        return await self._list("accounts", "accounts", limit=limit)

    async def account(self, name: str) -> shapes.AccountShown:
        """Return an account."""
        found: shapes.AccountShown = await self._call("GET", f"accounts/{part(name)}")
        return found

    async def add_account(self, name: str, *, parent: str | None = None, shares: float = 1.0) -> shapes.NewAccount:
        """Add an account."""
        body = {"name": name, "parent": parent, "shares": shares}
        found: shapes.NewAccount = await self._call("POST", "accounts", body)
        return found

    async def set_account(
        self,
        name: str,
        *,
        shares: float | None = None,
        permissions: Sequence[str] | None = None,
        parent: str | None = None,
        new_name: str | None = None,
        if_match: IfMatch = None,
    ) -> shapes.AccountStanding:
        """Change an account's shares, name, parent (empty: the top level), and the permissions of all submitters at or
        below it; None keeps a value.
        """
        body = {"shares": shares, "permissions": permissions, "parent": parent, "name": new_name}
        found: shapes.AccountStanding = await self._call("PATCH", f"accounts/{part(name)}", body, if_match=if_match)
        return found

    async def submitters(self, *, limit: int | None = 1000) -> list[shapes.SubmitterShown]:
        """Return submitters by id."""
        return await self._list("submitters", "submitters", limit=limit)

    async def submitter(self, name: str) -> shapes.SubmitterShown:
        """Return a submitter."""
        found: shapes.SubmitterShown = await self._call("GET", f"submitters/{part(name)}")
        return found

    async def add_submitter(self, name: str, *, account: str = "default", shares: float = 1.0) -> shapes.NewSubmitter:
        """Add a submitter."""
        body = {"name": name, "account": account, "shares": shares}
        found: shapes.NewSubmitter = await self._call("POST", "submitters", body)
        return found

    async def set_submitter(
        self,
        name: str,
        *,
        shares: float | None = None,
        account: str | None = None,
        permissions: Sequence[str] | None = None,
        new_name: str | None = None,
        if_match: IfMatch = None,
    ) -> shapes.SubmitterStanding:
        """Change a submitter's shares (in `account` if given), permissions and name; None keeps a value."""
        body = {"shares": shares, "account": account, "permissions": permissions, "name": new_name}
        found: shapes.SubmitterStanding = await self._call("PATCH", f"submitters/{part(name)}", body, if_match=if_match)
        return found

    async def account_tree(self) -> list[shapes.TreeRowShown]:
        """Return accounts, parents first, then submitters, then submitters' memberships in further accounts."""
        rows: list[shapes.TreeRowShown] = (await self._call("GET", "account-tree"))["rows"]
        return rows

    async def load_account_tree(
        self, rows: Sequence[Mapping[str, object]], *, dry_run: bool = False
    ) -> list[shapes.TreeRowShown]:
        """Add and change accounts and submitters, all rows or none, and return the rows that differed."""
        body = {"rows": list(rows), "dry_run": dry_run}
        changed: list[shapes.TreeRowShown] = (await self._call("PUT", "account-tree", body))["rows"]
        return changed

    async def delete_account(self, name: str, *, if_match: IfMatch = None) -> None:
        """Delete an account that has no accounts, submitters or batches."""
        await self._call("DELETE", f"accounts/{part(name)}", if_match=if_match)

    async def delete_submitter(self, name: str, *, if_match: IfMatch = None) -> None:
        """Delete a submitter that has no batches."""
        await self._call("DELETE", f"submitters/{part(name)}", if_match=if_match)

    async def volunteers(self, *, limit: int | None = 1000) -> list[shapes.VolunteerShown]:
        """Return volunteers by id."""
        return await self._list("volunteers", "volunteers", limit=limit)

    async def find_volunteers(self, text: str, *, limit: int | None = 1000) -> list[shapes.FoundVolunteer]:
        """Return volunteers with a text in their name, e-mail or a host's name, or with a host at this address."""
        return await self._list("volunteers/found", "volunteers", limit=limit, query={"q": text})

    async def volunteer(self, email: str) -> shapes.VolunteerShown:
        """Return a volunteer with the preferences."""
        found: shapes.VolunteerShown = await self._call("GET", f"volunteers/{part(email)}")
        return found

    async def add_volunteer(self, email: str, *, name: str = "", password: str | None = None) -> shapes.NewVolunteer:
        """Add a volunteer. The account key is shown only once."""
        body = {"email": email, "name": name, "password": password}
        found: shapes.NewVolunteer = await self._call("POST", "volunteers", body)
        return found

    async def set_volunteer(
        self,
        email: str,
        *,
        beta: bool | None = None,
        cpu: bool | None = None,
        gpu: bool | None = None,
        max_jobs: int | None = None,
        max_cpus: int | None = None,
        apps: Sequence[str] | None = None,
        if_match: IfMatch = None,
    ) -> shapes.VolunteerShown:
        """Change a volunteer's preferences. None keeps a value; an empty `apps` selects all apps."""
        body = {"beta": beta, "cpu": cpu, "gpu": gpu, "max_jobs": max_jobs, "max_cpus": max_cpus, "apps": apps}
        found: shapes.VolunteerShown = await self._call("PATCH", f"volunteers/{part(email)}", body, if_match=if_match)
        return found

    async def me(self) -> shapes.WhoShown:
        """Return the owner and the scopes of this token."""
        found: shapes.WhoShown = await self._call("GET", "me")
        return found

    async def people(self, *, limit: int | None = 1000) -> list[shapes.PersonShown]:
        """Return the users who may sign in: operators, submitters and viewers."""
        return await self._list("people", "people", limit=limit)

    async def person(self, name: str) -> shapes.PersonShown:
        """Return a user who may sign in."""
        found: shapes.PersonShown = await self._call("GET", f"people/{part(name)}")
        return found

    async def add_person(self, name: str, *, role: str = "viewer", submitter: str | None = None) -> shapes.InvitedShown:
        """Add a sign-in for an operator, submitter or viewer. The one-time password is shown only once."""
        body = {"name": name, "role": role, "submitter": submitter}
        found: shapes.InvitedShown = await self._call("POST", "people", body)
        return found

    async def set_person(
        self,
        name: str,
        *,
        role: str | None = None,
        submitter: str | None = None,
        active: bool | None = None,
        if_match: IfMatch = None,
    ) -> shapes.PersonShown:
        """Change a user's role, or disable the account (`active` False)."""
        body = {"role": role, "submitter": submitter, "active": active}
        found: shapes.PersonShown = await self._call("PATCH", f"people/{part(name)}", body, if_match=if_match)
        return found

    async def invite_again(self, name: str) -> shapes.InvitedShown:
        """Issue a new one-time password for a user who has forgotten the password."""
        found: shapes.InvitedShown = await self._call("POST", f"people/{part(name)}/password")
        return found

    async def end_sessions(self, name: str) -> int:
        """End all sessions of a user and return their number."""
        return int((await self._call("DELETE", f"people/{part(name)}/sessions"))["ended"])

    async def tokens(self, *, limit: int | None = 1000) -> list[shapes.TokenShown]:
        """Return the caller's tokens, or all tokens if the caller is an operator."""
        return await self._list("tokens", "tokens", limit=limit)

    async def add_token(
        self, name: str, *, scopes: Sequence[str] | None = None, days: int | None = None, person: str | None = None
    ) -> shapes.NewTokenShown:
        """Create a token. Its value is shown only once."""
        body = {"name": name, "scopes": scopes, "days": days, "person": person}
        found: shapes.NewTokenShown = await self._call("POST", "tokens", body)
        return found

    async def revoke_token(self, token_id: int) -> shapes.TokenShown:
        """Revoke a token."""
        found: shapes.TokenShown = await self._call("DELETE", f"tokens/{token_id}")
        return found

    async def audit(
        self,
        *,
        limit: int | None = 100,
        who: str | None = None,
        what: str | None = None,
        subject: str | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> list[shapes.ActShown]:
        """Return the audit trail, newest first: changes by a user, of an action, of a subject such as "batch 7"."""
        query = {"who": who, "what": what, "subject": subject, "since": since, "until": until}
        return await self._list("audit", "acts", limit=limit, query=query)

    async def subscriptions(self, *, limit: int | None = 1000) -> list[shapes.SubscriptionShown]:
        """Return the caller's subscriptions to notifications, or all of them if the caller is an operator."""
        return await self._list("subscriptions", "subscriptions", limit=limit)

    async def add_subscription(
        self,
        channel: str,
        address: str,
        *,
        kinds: Sequence[str] | None = None,
        project_wide: bool = False,
        interval_s: float = 300.0,
        person: str | None = None,
    ) -> shapes.NewSubscriptionShown:
        """Subscribe an address of the channel `email` or `webhook`. The secret of a webhook is shown only once."""
        body = {"channel": channel, "address": address, "kinds": kinds, "project_wide": project_wide}
        found: shapes.NewSubscriptionShown = await self._call(
            "POST", "subscriptions", {**body, "interval_s": interval_s, "person": person}
        )
        return found

    async def set_subscription(
        self,
        subscription_id: int,
        *,
        kinds: Sequence[str] | None = None,
        interval_s: float | None = None,
        paused: bool | None = None,
    ) -> shapes.SubscriptionShown:
        """Change a subscription's events and interval, or pause it; None keeps a value."""
        body = {"kinds": kinds, "interval_s": interval_s, "paused": paused}
        found: shapes.SubscriptionShown = await self._call("PATCH", f"subscriptions/{subscription_id}", body)
        return found

    async def delete_subscription(self, subscription_id: int) -> shapes.SubscriptionShown:
        """Delete a subscription."""
        found: shapes.SubscriptionShown = await self._call("DELETE", f"subscriptions/{subscription_id}")
        return found

    async def rotate_secret(self, subscription_id: int) -> shapes.NewSubscriptionShown:
        """Make a new secret of a webhook; for a day, messages are also signed with the previous one."""
        found: shapes.NewSubscriptionShown = await self._call("POST", f"subscriptions/{subscription_id}/secret")
        return found

    async def test_subscription(self, subscription_id: int) -> shapes.SubscriptionShown:
        """Send a test message."""
        found: shapes.SubscriptionShown = await self._call("POST", f"subscriptions/{subscription_id}/test")
        return found

    async def deliveries(
        self, *, subscription_id: int | None = None, limit: int | None = 100
    ) -> list[shapes.DeliveryShown]:
        """Return deliveries of notifications, newest first, with the outcome of their last attempt."""
        query = {"subscription_id": subscription_id}
        return await self._list("deliveries", "deliveries", limit=limit, query=query)
