"""The client for scripts and notebooks: every call returns when it is done.

Generated from the methods of `Client` by `python -m api.client_types`; not to be edited.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, overload

from muster_client import shapes
from muster_client.loop_thread import LoopThread
from muster_client.transport import StrPath
from muster_client.work import ExplainedKind, LookedFor


class SyncClient(LoopThread):
    """One project's API. Raises ApiError for every refusal, UnreachableError without an answer.

    It works in scripts, in notebooks and in several threads, with or without `with`.
    """

    def submit(self, batch: Mapping[str, object]) -> int:
        """Submit a batch: the keys of a batch file, inputs by the name of a file put before. Its id.

        Where the answer is lost it is sent again, and submitted once.
        """
        return self._run(self._client.submit(batch))

    def submit_and_preview(self, batch: Mapping[str, object]) -> shapes.Submitted:
        """The same, with when it will be done."""
        return self._run(self._client.submit_and_preview(batch))

    def preview(self, batch: Mapping[str, object]) -> shapes.PreviewShown:
        """When the batch would be done if it was submitted now: `q50_at`, `q90_at`, …. Nothing is written."""
        return self._run(self._client.preview(batch))

    def batch(self, batch_id: int) -> shapes.BatchShown:
        """A batch with its counters."""
        return self._run(self._client.batch(batch_id))

    def batches(self, *, limit: int | None = 100) -> list[shapes.BatchShown]:
        """The newest batches, newest first; None: all of them."""
        return self._run(self._client.batches(limit=limit))

    def abort(self, batch_id: int) -> shapes.BatchShown:
        """End a batch; returns it."""
        return self._run(self._client.abort(batch_id))

    def set_batch(
        self,
        batch_id: int,
        *,
        user_priority: int | None = None,
        level: str | None = None,
        queue: str | None = None,
        account: str | None = None,
        deadline_at: float | None = None,
    ) -> shapes.Importance:
        """How important a batch is: user priority (-1024 to 0, to 1023 with a permission), service level, queue.

        Its account as long as nothing of it was sent, and the deadline of one that has a deadline.
        """
        return self._run(
            self._client.set_batch(
                batch_id,
                user_priority=user_priority,
                level=level,
                queue=queue,
                account=account,
                deadline_at=deadline_at,
            )
        )

    def watch(self, batch_id: int) -> Iterator[shapes.ProgressShown]:
        """How far a batch is, each time that changes, until it has ended. One that breaks off is taken up again."""
        return self._iterate(self._client.watch(batch_id))

    def wait(self, batch_id: int) -> shapes.BatchShown:
        """The batch when it has ended."""
        return self._run(self._client.wait(batch_id))

    def jobs(
        self, batch_id: int, *, state: str | None = None, after: int | None = None, limit: int | None = 1000
    ) -> list[shapes.JobShown]:
        """Jobs of a batch by id, behind the job `after`, those in one `state` or all, without their instances."""
        return self._run(self._client.jobs(batch_id, state=state, after=after, limit=limit))

    def job(self, job_id: int) -> shapes.JobShown:
        """A job with its instances."""
        return self._run(self._client.job(job_id))

    def job_outputs(self, job_id: int) -> shapes.ResultShown:
        """The outputs that a job's canonical instance brought, or why there is no result."""
        return self._run(self._client.job_outputs(job_id))

    def batch_results(
        self, batch_id: int, *, after: int | None = None, limit: int | None = 1000
    ) -> list[shapes.ResultShown]:
        """The results of a batch's jobs by id, behind the job `after`: the outputs of each, or why there is none."""
        return self._run(self._client.batch_results(batch_id, after=after, limit=limit))

    def fetch_outputs(self, batch_id: int, to: StrPath, *, after: int | None = None, limit: int | None = None) -> int:
        """Write a tar with the outputs of a batch's valid jobs, of `limit` jobs behind `after`, to a path; its size.

        JOB/OUTPUT, and at its end `missing.jsonl`, which names what is missing. Where it breaks off nothing is left.
        """
        return self._run(self._client.fetch_outputs(batch_id, to, after=after, limit=limit))

    def fetch_output(self, job_id: int, name: str, to: StrPath) -> int:
        """Write the file of one output of a job's result to a path; its size. Where it breaks off nothing is left."""
        return self._run(self._client.fetch_output(job_id, name, to))

    def instance(self, instance_id: int) -> shapes.OneInstance:
        """One instance of a job."""
        return self._run(self._client.instance(instance_id))

    def instance_trickles(self, instance_id: int, *, limit: int | None = 1000) -> list[shapes.TrickleShown]:
        """The trickle messages that an instance's app sent while it ran, in the order they came."""
        return self._run(self._client.instance_trickles(instance_id, limit=limit))

    def forecasts(self, batch_id: int, *, limit: int = 100) -> shapes.ForecastsShown:
        """What is published of a batch, its `forecasts` in order of time, and how good its app's are (`accuracy`)."""
        return self._run(self._client.forecasts(batch_id, limit=limit))

    def forecast_health(self) -> list[shapes.AppForecastsShown]:
        """How forecasting goes, app by app: ages of the last forecasts, coverage and error."""
        return self._run(self._client.forecast_health())

    @overload
    def explain(self, kind: Literal["host"], identifier: int) -> shapes.HostExplained: ...

    @overload
    def explain(self, kind: Literal["batch"], identifier: int) -> shapes.BatchExplained: ...

    @overload
    def explain(self, kind: Literal["job"], identifier: int) -> shapes.JobExplained: ...

    @overload
    def explain(self, kind: Literal["instance"], identifier: int) -> shapes.InstanceExplained: ...

    @overload
    def explain(self, kind: ExplainedKind, identifier: int) -> shapes.Explained: ...

    def explain(self, kind: ExplainedKind, identifier: int) -> shapes.Explained:
        """The decision run dry: why a host gets no work, what holds a batch or job back, how a due date came about."""
        return self._run(self._client.explain(kind, identifier))

    def hosts(
        self, *, limit: int | None = 1000, show: LookedFor | None = None, silent_s: float | None = None
    ) -> list[shapes.ListedHostShown]:
        """Hosts by id, or those that are slow, fail or are silent, as the API's `list_hosts` says."""
        return self._run(self._client.hosts(limit=limit, show=show, silent_s=silent_s))

    def host(self, host_id: int) -> shapes.HostDetail:
        """A host and what is known of it with each app version."""
        return self._run(self._client.host(host_id))

    def host_instances(self, host_id: int, *, limit: int | None = 1000) -> list[shapes.HeldShown]:
        """What a host has in progress."""
        return self._run(self._client.host_instances(host_id, limit=limit))

    def ranking(self) -> shapes.RankingRunShown | None:
        """What the last ranking of hosts found; None before the first."""
        return self._run(self._client.ranking())

    def host_percentiles(self, host_id: int) -> list[shapes.PercentileShown]:
        """Where a host stands with each app version; nothing of a newcomer."""
        return self._run(self._client.host_percentiles(host_id))

    def unschedulable(self) -> list[shapes.RefusedShown]:
        """Return work that every recent host refused, with the reasons."""
        return self._run(self._client.unschedulable())

    def processes(self, *, limit: int | None = 1000) -> list[shapes.ProcessShown]:
        """What each process said of itself in the last minute: of a worker its job array."""
        return self._run(self._client.processes(limit=limit))

    def apps(self, *, limit: int | None = 1000) -> list[shapes.AppShown]:
        """Applications with their current versions."""
        return self._run(self._client.apps(limit=limit))

    def app(self, name: str) -> shapes.AppDetail:
        """An application and each of its current versions."""
        return self._run(self._client.app(name))

    def add_app(self, name: str, **more: Any) -> shapes.NewApp:
        """Add an application; `more`: user_friendly_name, beta, adaptive_copies, one_per_host, one_per_volunteer."""
        return self._run(self._client.add_app(name, **more))

    def set_app(self, name: str, **more: Any) -> shapes.AppShown:
        """Change an application; `more` as in `add_app`, or deprecated."""
        return self._run(self._client.set_app(name, **more))

    def plan_classes(self, *, limit: int | None = 1000) -> list[shapes.PlanClassShown]:
        """Plan classes by name."""
        return self._run(self._client.plan_classes(limit=limit))

    def set_plan_class(self, name: str, **more: Any) -> shapes.PlanClassShown:
        """Define or change a plan class; `more`: the keys of `plan_classes`, else their defaults."""
        return self._run(self._client.set_plan_class(name, **more))

    def add_version(
        self,
        app: str,
        program: StrPath,
        *,
        platform: str,
        version: int,
        signature: str,
        plan_class: str = "",
        api_version: str = "7.5.0",
    ) -> int:
        """Add a version of an application, 100 is 1.00; its id. `signature`: of the program, see `muster sign`."""
        return self._run(
            self._client.add_version(
                app,
                program,
                platform=platform,
                version=version,
                signature=signature,
                plan_class=plan_class,
                api_version=api_version,
            )
        )

    def put_file(self, path: StrPath, *, name: str | None = None) -> shapes.FileShown:
        """Bring a file that batches may name as an input."""
        return self._run(self._client.put_file(path, name=name))

    def order(self, *, limit: int = 100) -> shapes.PrioritiesShown:
        """`batches` in their order with the reasons of the last ordering, and those `unordered` until the next."""
        return self._run(self._client.order(limit=limit))

    def priorities(self, *, limit: int = 100) -> list[shapes.PriorityShown]:
        """Batches in their order with the reasons of the last ordering: terms whose points sum to `total`."""
        return self._run(self._client.priorities(limit=limit))

    def priority(self, batch_id: int) -> shapes.PriorityShown:
        """Why one batch stands where it stands."""
        return self._run(self._client.priority(batch_id))

    def weights(self) -> shapes.WeightsShown:
        """The terms of the chosen policy with their weights."""
        return self._run(self._client.weights())

    def preview_ordering(self, values: Mapping[str, object], *, limit: int = 50) -> shapes.OrderPreviewed:
        """Where batches would stand with these ordering settings; nothing is changed."""
        return self._run(self._client.preview_ordering(values, limit=limit))

    def set_ordering(self, values: Mapping[str, object], *, why: str, by: str = "api") -> list[shapes.ChangeMade]:
        """Choose and weigh the policy, with who and why in the audit trail; what was changed, from what to what."""
        return self._run(self._client.set_ordering(values, why=why, by=by))

    def fairshare(self) -> list[shapes.ShareShown]:
        """The tree of accounts and submitters with shares, decayed usage and standings."""
        return self._run(self._client.fairshare())

    def set_shares(
        self, kind: Literal["account", "submitter"], name: str, shares: float, *, account: str | None = None
    ) -> None:
        """The shares of an account or a submitter; `account` lets a submitter submit there too, with these shares."""
        self._run(self._client.set_shares(kind, name, shares, account=account))

    def permit(self, kind: Literal["account", "submitter"], name: str, permissions: Sequence[str]) -> None:
        """What all in an account, or a submitter, may do, instead of what they might: expedite, raise."""
        self._run(self._client.permit(kind, name, permissions))

    def emulate_fairshare(self, system: str, document: object) -> shapes.TableShown:
        """What another system's fair-share says of a tree: `columns` and `rows`, as printed."""
        return self._run(self._client.emulate_fairshare(system, document))

    def grants(self, *, limit: int | None = 1000) -> list[shapes.GrantShown]:
        """Service units of accounts: granted, used, reserved and left in this period."""
        return self._run(self._client.grants(limit=limit))

    def set_grant(self, account: str, *, granted_su: float, period_s: float) -> shapes.GrantShown:
        """Grant an account service units per period; what this period used stays used."""
        return self._run(self._client.set_grant(account, granted_su=granted_su, period_s=period_s))

    def take_grant(self, account: str) -> None:
        """Take an account's grant: it is not limited by one any more."""
        self._run(self._client.take_grant(account))

    def limits(self, *, limit: int | None = 1000) -> list[shapes.LimitShown]:
        """How much submitters, accounts, apps and queues may have."""
        return self._run(self._client.limits(limit=limit))

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
        return self._run(self._client.set_limit(scope, quantity, name=name, soft=soft, hard=hard))

    def lift_limit(self, scope: str, quantity: str, *, name: str | None = None) -> None:
        """Lift the limit of one by name, or everybody's."""
        self._run(self._client.lift_limit(scope, quantity, name=name))

    def settings(self) -> dict[str, Any]:
        """Every setting's value by its key."""
        return self._run(self._client.settings())

    def setting(self, key: str) -> shapes.SettingShown:
        """One setting with its default and its meaning."""
        return self._run(self._client.setting(key))

    def setting_details(self) -> list[shapes.SettingShown]:
        """Every setting with its default and its meaning."""
        return self._run(self._client.setting_details())

    def set_setting(self, key: str, value: object, *, why: str = "", by: str = "api") -> Any:
        """Change a setting; running services follow within seconds. The value as it was understood."""
        return self._run(self._client.set_setting(key, value, why=why, by=by))

    def reset_setting(self, key: str, *, why: str = "", by: str = "api") -> Any:
        """Take a setting's default back; the default."""
        return self._run(self._client.reset_setting(key, why=why, by=by))

    def setting_changes(self, *, limit: int | None = 100) -> list[shapes.SettingChangeShown]:
        """Who changed what, when and why; newest first."""
        return self._run(self._client.setting_changes(limit=limit))

    def thresholds(self) -> list[shapes.ThresholdShown]:
        """Every threshold with its value, its effect, and who changed it last and why."""
        return self._run(self._client.thresholds())

    def preview_thresholds(self, values: Mapping[str, object]) -> shapes.ThresholdsPreviewed:
        """What these values would do, by hosts as of `hosts_read_at` and what waits now; nothing is changed."""
        return self._run(self._client.preview_thresholds(values))

    def set_thresholds(self, values: Mapping[str, object], *, why: str, by: str = "api") -> list[shapes.ChangeMade]:
        """Change thresholds, with who and why in the audit trail; what was changed, from what to what."""
        return self._run(self._client.set_thresholds(values, why=why, by=by))

    def simulate_thresholds(
        self, values: Mapping[str, object], *, seeds: int = 3, hosts: int = 500, days: float = 14.0
    ) -> shapes.SimulationShown:
        """Begin to simulate the project as it is and with these thresholds; `simulation` says how far that is."""
        return self._run(self._client.simulate_thresholds(values, seeds=seeds, hosts=hosts, days=days))

    def simulation(self, simulation_id: int) -> shapes.SimulationShown:
        """How far a simulation is, and what it came to."""
        return self._run(self._client.simulation(simulation_id))

    def cancel_simulation(self, simulation_id: int) -> shapes.SimulationShown:
        """Stop a simulation; one that is over stays as it is."""
        return self._run(self._client.cancel_simulation(simulation_id))

    def accounts(self, *, limit: int | None = 1000) -> list[shapes.AccountShown]:
        """Accounts by id."""
        return self._run(self._client.accounts(limit=limit))

    def add_account(self, name: str, *, parent: str | None = None, shares: float = 1.0) -> shapes.NewAccount:
        """Add an account."""
        return self._run(self._client.add_account(name, parent=parent, shares=shares))

    def set_account(
        self, name: str, *, shares: float | None = None, permissions: Sequence[str] | None = None
    ) -> shapes.AccountStanding:
        """An account's shares, and what all who submit in it may do; what is None stays."""
        return self._run(self._client.set_account(name, shares=shares, permissions=permissions))

    def submitters(self, *, limit: int | None = 1000) -> list[shapes.SubmitterShown]:
        """Submitters by id."""
        return self._run(self._client.submitters(limit=limit))

    def add_submitter(self, name: str, *, account: str = "default", shares: float = 1.0) -> shapes.NewSubmitter:
        """Add a submitter."""
        return self._run(self._client.add_submitter(name, account=account, shares=shares))

    def set_submitter(
        self,
        name: str,
        *,
        shares: float | None = None,
        account: str | None = None,
        permissions: Sequence[str] | None = None,
    ) -> shapes.SubmitterStanding:
        """A submitter's shares, in `account` where it is told, and what it may do; what is None stays."""
        return self._run(self._client.set_submitter(name, shares=shares, account=account, permissions=permissions))

    def volunteers(self, *, limit: int | None = 1000) -> list[shapes.VolunteerShown]:
        """Volunteers by id."""
        return self._run(self._client.volunteers(limit=limit))

    def add_volunteer(self, email: str, *, name: str = "", password: str | None = None) -> shapes.NewVolunteer:
        """Add a volunteer; the account key is shown only now."""
        return self._run(self._client.add_volunteer(email, name=name, password=password))

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
        return self._run(
            self._client.set_volunteer(
                email, beta=beta, cpu=cpu, gpu=gpu, max_jobs=max_jobs, max_cpus=max_cpus, apps=apps
            )
        )

    def me(self) -> shapes.WhoShown:
        """Whose token this is, and what it may do."""
        return self._run(self._client.me())

    def people(self, *, limit: int | None = 1000) -> list[shapes.PersonShown]:
        """Who signs in."""
        return self._run(self._client.people(limit=limit))

    def add_person(self, name: str, *, role: str = "viewer", submitter: str | None = None) -> shapes.InvitedShown:
        """Add somebody who signs in; the one-time password is shown only now."""
        return self._run(self._client.add_person(name, role=role, submitter=submitter))

    def set_person(
        self, name: str, *, role: str | None = None, submitter: str | None = None, active: bool | None = None
    ) -> shapes.PersonShown:
        """Change a role, or shut somebody out (`active` False)."""
        return self._run(self._client.set_person(name, role=role, submitter=submitter, active=active))

    def invite_again(self, name: str) -> shapes.InvitedShown:
        """A new one-time password for somebody who has forgotten the own one."""
        return self._run(self._client.invite_again(name))

    def end_sessions(self, name: str) -> int:
        """Sign somebody out everywhere; how many sessions that were."""
        return self._run(self._client.end_sessions(name))

    def tokens(self, *, limit: int | None = 1000) -> list[shapes.TokenShown]:
        """One's tokens; an operator's: everybody's."""
        return self._run(self._client.tokens(limit=limit))

    def add_token(
        self, name: str, *, scopes: Sequence[str] | None = None, days: int | None = None, person: str | None = None
    ) -> shapes.NewTokenShown:
        """Make a token; it is shown only now."""
        return self._run(self._client.add_token(name, scopes=scopes, days=days, person=person))

    def revoke_token(self, token_id: int) -> shapes.TokenShown:
        """Revoke a token."""
        return self._run(self._client.revoke_token(token_id))

    def audit(self, *, limit: int | None = 100) -> list[shapes.ActShown]:
        """Who did what, newest first; changes of settings are told by `setting_changes`."""
        return self._run(self._client.audit(limit=limit))
