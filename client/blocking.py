"""The same client for scripts that do not wait for several things at once: every call returns when it is done.

A test holds its methods against those of `Client`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from api import shapes
from client.blocking_work import BlockingWork


class SyncClient(BlockingWork):
    """One project's API. Raises ApiError for every refusal, UnreachableError without an answer."""

    def order(self, *, limit: int = 100) -> shapes.PrioritiesShown:
        """`batches` in their order with the reasons of the last ordering, and those `unordered` until the next."""
        return self._runner.run(self._client.order(limit=limit))

    def priorities(self, *, limit: int = 100) -> list[shapes.PriorityShown]:
        """Batches in their order with the reasons of the last ordering: terms whose points sum to `total`."""
        return self._runner.run(self._client.priorities(limit=limit))

    def priority(self, batch_id: int) -> shapes.PriorityShown:
        """Why one batch stands where it stands."""
        return self._runner.run(self._client.priority(batch_id))

    def weights(self) -> shapes.WeightsShown:
        """The terms of the chosen policy with their weights."""
        return self._runner.run(self._client.weights())

    def preview_ordering(self, values: Mapping[str, object], *, limit: int = 50) -> shapes.OrderPreviewed:
        """Where batches would stand with these ordering settings; nothing is changed."""
        return self._runner.run(self._client.preview_ordering(values, limit=limit))

    def set_ordering(self, values: Mapping[str, object], *, why: str, by: str = "api") -> list[shapes.ChangeMade]:
        """Choose and weigh the policy, with who and why in the audit trail; what was changed, from what to what."""
        return self._runner.run(self._client.set_ordering(values, why=why, by=by))

    def fairshare(self) -> list[shapes.ShareShown]:
        """The tree of accounts and submitters with shares, decayed usage and standings."""
        return self._runner.run(self._client.fairshare())

    def set_shares(
        self, kind: Literal["account", "submitter"], name: str, shares: float, *, account: str | None = None
    ) -> None:
        """The shares of an account or a submitter; `account` lets a submitter submit there too, with these shares."""
        self._runner.run(self._client.set_shares(kind, name, shares, account=account))

    def permit(self, kind: Literal["account", "submitter"], name: str, permissions: Sequence[str]) -> None:
        """What all in an account, or a submitter, may do, instead of what they might: expedite, raise."""
        self._runner.run(self._client.permit(kind, name, permissions))

    def emulate_fairshare(self, system: str, document: object) -> shapes.TableShown:
        """What another system's fair-share says of a tree: `columns` and `rows`, as printed."""
        return self._runner.run(self._client.emulate_fairshare(system, document))

    def grants(self, *, limit: int | None = 1000) -> list[shapes.GrantShown]:
        """Service units of accounts: granted, used, reserved and left in this period."""
        return self._runner.run(self._client.grants(limit=limit))

    def set_grant(self, account: str, *, granted_su: float, period_s: float) -> shapes.GrantShown:
        """Grant an account service units per period; what this period used stays used."""
        return self._runner.run(self._client.set_grant(account, granted_su=granted_su, period_s=period_s))

    def take_grant(self, account: str) -> None:
        """Take an account's grant: it is not limited by one any more."""
        self._runner.run(self._client.take_grant(account))

    def limits(self, *, limit: int | None = 1000) -> list[shapes.LimitShown]:
        """How much submitters, accounts, apps and queues may have."""
        return self._runner.run(self._client.limits(limit=limit))

    def set_limit(
        self,
        scope: str,
        quantity: str,
        *,
        name: str | None = None,
        soft: float | None = None,
        hard: float | None = None,
    ) -> shapes.LimitShown:
        """Limit one by name, or everybody who has no limit of its own."""
        return self._runner.run(self._client.set_limit(scope, quantity, name=name, soft=soft, hard=hard))

    def lift_limit(self, scope: str, quantity: str, *, name: str | None = None) -> None:
        """Lift the limit of one by name, or everybody's."""
        self._runner.run(self._client.lift_limit(scope, quantity, name=name))

    def settings(self) -> dict[str, Any]:
        """Every setting's value by its key."""
        return self._runner.run(self._client.settings())

    def setting(self, key: str) -> shapes.SettingShown:
        """One setting with its default and its meaning."""
        return self._runner.run(self._client.setting(key))

    def setting_details(self) -> list[shapes.SettingShown]:
        """Every setting with its default and its meaning."""
        return self._runner.run(self._client.setting_details())

    def set_setting(self, key: str, value: object, *, why: str = "", by: str = "api") -> Any:
        """Change a setting; running services follow within seconds. The value as it was understood."""
        return self._runner.run(self._client.set_setting(key, value, why=why, by=by))

    def reset_setting(self, key: str, *, why: str = "", by: str = "api") -> Any:
        """Take a setting's default back; the default."""
        return self._runner.run(self._client.reset_setting(key, why=why, by=by))

    def setting_changes(self, *, limit: int | None = 100) -> list[shapes.SettingChangeShown]:
        """Who changed what, when and why; newest first."""
        return self._runner.run(self._client.setting_changes(limit=limit))

    def thresholds(self) -> list[shapes.ThresholdShown]:
        """Every threshold with its value, its effect, and who changed it last and why."""
        return self._runner.run(self._client.thresholds())

    def preview_thresholds(self, values: Mapping[str, object]) -> shapes.ThresholdsPreviewed:
        """What these values would do, by hosts as of `hosts_read_at` and what waits now; nothing is changed."""
        return self._runner.run(self._client.preview_thresholds(values))

    def set_thresholds(self, values: Mapping[str, object], *, why: str, by: str = "api") -> list[shapes.ChangeMade]:
        """Change thresholds, with who and why in the audit trail; what was changed, from what to what."""
        return self._runner.run(self._client.set_thresholds(values, why=why, by=by))

    def simulate_thresholds(
        self, values: Mapping[str, object], *, seeds: int = 3, hosts: int = 500, days: float = 14.0
    ) -> shapes.SimulationShown:
        """Begin to simulate the project as it is and with these thresholds; `simulation` says how far that is."""
        return self._runner.run(self._client.simulate_thresholds(values, seeds=seeds, hosts=hosts, days=days))

    def simulation(self, simulation_id: int) -> shapes.SimulationShown:
        """How far a simulation is, and what it came to."""
        return self._runner.run(self._client.simulation(simulation_id))

    def cancel_simulation(self, simulation_id: int) -> shapes.SimulationShown:
        """Stop a simulation; one that is over stays as it is."""
        return self._runner.run(self._client.cancel_simulation(simulation_id))

    def accounts(self, *, limit: int | None = 1000) -> list[shapes.AccountShown]:
        """Accounts by id."""
        return self._runner.run(self._client.accounts(limit=limit))

    def add_account(self, name: str, *, parent: str | None = None, shares: float = 1.0) -> shapes.NewAccount:
        """Add an account."""
        return self._runner.run(self._client.add_account(name, parent=parent, shares=shares))

    def set_account(
        self, name: str, *, shares: float | None = None, permissions: Sequence[str] | None = None
    ) -> shapes.AccountStanding:
        """An account's shares, and what all who submit in it may do; what is None stays."""
        return self._runner.run(self._client.set_account(name, shares=shares, permissions=permissions))

    def submitters(self, *, limit: int | None = 1000) -> list[shapes.SubmitterShown]:
        """Submitters by id."""
        return self._runner.run(self._client.submitters(limit=limit))

    def add_submitter(self, name: str, *, account: str = "default", shares: float = 1.0) -> shapes.NewSubmitter:
        """Add a submitter."""
        return self._runner.run(self._client.add_submitter(name, account=account, shares=shares))

    def set_submitter(
        self,
        name: str,
        *,
        shares: float | None = None,
        account: str | None = None,
        permissions: Sequence[str] | None = None,
    ) -> shapes.SubmitterStanding:
        """A submitter's shares, in `account` where it is told, and what it may do; what is None stays."""
        return self._runner.run(
            self._client.set_submitter(name, shares=shares, account=account, permissions=permissions)
        )

    def volunteers(self, *, limit: int | None = 1000) -> list[shapes.VolunteerShown]:
        """Volunteers by id."""
        return self._runner.run(self._client.volunteers(limit=limit))

    def add_volunteer(self, email: str, *, name: str = "", password: str | None = None) -> shapes.NewVolunteer:
        """Add a volunteer; the account key is shown only now."""
        return self._runner.run(self._client.add_volunteer(email, name=name, password=password))

    def set_volunteer(
        self,
        email: str,
        *,
        beta: bool | None = None,
        cpu: bool | None = None,
        gpu: bool | None = None,
        max_jobs: int | None = None,
        max_cpus: int | None = None,
        apps: Sequence[str] | None = None,
    ) -> shapes.VolunteerShown:
        """What a volunteer takes, and how much of it; what is None stays, no `apps` are all of them."""
        changed = self._client.set_volunteer(
            email, beta=beta, cpu=cpu, gpu=gpu, max_jobs=max_jobs, max_cpus=max_cpus, apps=apps
        )
        return self._runner.run(changed)

    def me(self) -> shapes.WhoShown:
        """Whose token this is, and what it may do."""
        return self._runner.run(self._client.me())

    def people(self, *, limit: int | None = 1000) -> list[shapes.PersonShown]:
        """Who signs in."""
        return self._runner.run(self._client.people(limit=limit))

    def add_person(self, name: str, *, role: str = "viewer", submitter: str | None = None) -> shapes.InvitedShown:
        """Add somebody who signs in; the one-time password is shown only now."""
        return self._runner.run(self._client.add_person(name, role=role, submitter=submitter))

    def set_person(
        self, name: str, *, role: str | None = None, submitter: str | None = None, active: bool | None = None
    ) -> shapes.PersonShown:
        """Change a role, or shut somebody out (`active` False)."""
        return self._runner.run(self._client.set_person(name, role=role, submitter=submitter, active=active))

    def invite_again(self, name: str) -> shapes.InvitedShown:
        """A new one-time password for somebody who has forgotten the own one."""
        return self._runner.run(self._client.invite_again(name))

    def end_sessions(self, name: str) -> int:
        """Sign somebody out everywhere; how many sessions that were."""
        return self._runner.run(self._client.end_sessions(name))

    def tokens(self, *, limit: int | None = 1000) -> list[shapes.TokenShown]:
        """One's tokens; an operator's: everybody's."""
        return self._runner.run(self._client.tokens(limit=limit))

    def add_token(
        self, name: str, *, scopes: Sequence[str] | None = None, days: int | None = None, person: str | None = None
    ) -> shapes.NewTokenShown:
        """Make a token; it is shown only now."""
        return self._runner.run(self._client.add_token(name, scopes=scopes, days=days, person=person))

    def revoke_token(self, token_id: int) -> shapes.TokenShown:
        """Revoke a token."""
        return self._runner.run(self._client.revoke_token(token_id))

    def audit(self, *, limit: int | None = 100) -> list[shapes.ActShown]:
        """Who did what, newest first; changes of settings are told by `setting_changes`."""
        return self._runner.run(self._client.audit(limit=limit))
