"""A blocking client for scripts and notebooks.

Generated from the methods of `Client` by `python -m api.client_types`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, overload

from muster_client import shapes
from muster_client.loop_thread import LoopThread
from muster_client.transport import IfMatch, StrPath
from muster_client.work import ExplainedKind, HostListKind


class SyncClient(LoopThread):
    """A client of one project's API. Raises ApiError if the server refuses, UnreachableError if it does not reply.

    For scripts, notebooks and several threads, with or without `with`.
    """

    def submit(self, batch: Mapping[str, object]) -> int:
        """Submit a batch and return its id. `batch` has the keys of a batch file; inputs are names of uploaded files.

        If the reply is lost, the request is repeated, but the batch is submitted only once.
        """
        return self._run(self._client.submit(batch))

    def submit_and_preview(self, batch: Mapping[str, object]) -> shapes.Submitted:
        """Submit a batch and return it with its forecast."""
        return self._run(self._client.submit_and_preview(batch))

    def preview(self, batch: Mapping[str, object]) -> shapes.PreviewShown:
        """Return the forecast for the batch if it were submitted now: `q50_at`, `q90_at`, …. Nothing is stored."""
        return self._run(self._client.preview(batch))

    def batch(self, batch_id: int) -> shapes.OneBatchShown:
        """Return a batch with its job counts."""
        return self._run(self._client.batch(batch_id))

    def batches(self, *, limit: int | None = 100, **chosen: object) -> list[shapes.BatchShown]:
        """Return batches, newest first; all batches if `limit` is None.

        `chosen`: state, qos, app, submitter, account, queue, at_risk, blocked, failed, q (a part of the name) and sort,
        as the API's `list_batches` defines them.
        """
        return self._run(self._client.batches(limit=limit, **chosen))

    def abort(self, batch_id: int, *, if_match: IfMatch = None) -> shapes.BatchShown:
        """Abort a batch and return it."""
        return self._run(self._client.abort(batch_id, if_match=if_match))

    def clone_batch(self, batch_id: int, **changes: Any) -> shapes.Submitted:
        """Submit the jobs of a batch again, in a new batch, and return it with its forecast.

        `changes`: name, qos, deadline_s, submitter, account, queue, level, user_priority; others are as in the batch.
        If the reply is lost, the request is repeated, but the batch is submitted only once.
        """
        return self._run(self._client.clone_batch(batch_id, **changes))

    def preview_clone(self, batch_id: int, **changes: Any) -> shapes.PreviewShown:
        """Return the forecast for a clone with these changes. Nothing is stored."""
        return self._run(self._client.preview_clone(batch_id, **changes))

    def retry_batch(self, batch_id: int, *, if_match: IfMatch = None) -> shapes.Retried:
        """Open the failed jobs of a batch again, with new instances."""
        return self._run(self._client.retry_batch(batch_id, if_match=if_match))

    def batch_errors(self, batch_id: int) -> shapes.BatchErrors:
        """Return the errors of a batch, grouped by exit status and the end of standard error."""
        return self._run(self._client.batch_errors(batch_id))

    def set_batch(
        self,
        batch_id: int,
        *,
        user_priority: int | None = None,
        level: str | None = None,
        queue: str | None = None,
        account: str | None = None,
        deadline_at: float | None = None,
        release: bool = False,
        why: str | None = None,
        if_match: IfMatch = None,
    ) -> shapes.Importance:
        """Change a batch's user priority (-1024 to 0, or to 1023 with a permission), service level and queue.

        The account can change until the first job is sent, the deadline only if the batch has one. `release`: it no
        longer waits for other batches. `why`: the reason, for the audit trail.
        """
        return self._run(
            self._client.set_batch(
                batch_id,
                user_priority=user_priority,
                level=level,
                queue=queue,
                account=account,
                deadline_at=deadline_at,
                release=release,
                why=why,
                if_match=if_match,
            )
        )

    def watch(self, batch_id: int) -> Iterator[shapes.ProgressShown]:
        """Yield a batch's progress after each change until it has ended. Reconnects if the stream breaks."""
        return self._iterate(self._client.watch(batch_id))

    def wait(self, batch_id: int) -> shapes.OneBatchShown:
        """Wait until a batch has ended and return it."""
        return self._run(self._client.wait(batch_id))

    def jobs(
        self, batch_id: int, *, state: str | None = None, after: int | None = None, limit: int | None = 1000
    ) -> list[shapes.JobShown]:
        """Return a batch's jobs in order of id, after id `after`, in one `state` or all, without their instances."""
        return self._run(self._client.jobs(batch_id, state=state, after=after, limit=limit))

    def instances(
        self, batch_id: int, *, state: str | None = None, limit: int | None = 1000
    ) -> list[shapes.ListedInstanceShown]:
        """Return a batch's instances, retries and copies first, in one `state` or all."""
        return self._run(self._client.instances(batch_id, state=state, limit=limit))

    def job(self, job_id: int) -> shapes.JobShown:
        """Return a job with its instances."""
        return self._run(self._client.job(job_id))

    def job_outputs(self, job_id: int) -> shapes.ResultShown:
        """Return the outputs of a job's canonical instance, or why there is no result."""
        return self._run(self._client.job_outputs(job_id))

    def batch_results(
        self, batch_id: int, *, after: int | None = None, limit: int | None = 1000
    ) -> list[shapes.ResultShown]:
        """Return the results of a batch's jobs after job id `after`: each job's outputs, or why it has none."""
        return self._run(self._client.batch_results(batch_id, after=after, limit=limit))

    def results_table(self, batch_id: int, to: StrPath) -> int:
        """Download a CSV table of a batch's jobs and results; return its size. A partial file is removed."""
        return self._run(self._client.results_table(batch_id, to))

    def fetch_outputs(self, batch_id: int, to: StrPath, *, after: int | None = None, limit: int | None = None) -> int:
        """Download the outputs of a batch's valid jobs as a tar archive, for `limit` jobs after job id `after`; return
        its size.

        It contains JOB/OUTPUT files and, at the end, `missing.jsonl` with the missing files. A partial file is removed.
        """
        return self._run(self._client.fetch_outputs(batch_id, to, after=after, limit=limit))

    def fetch_output(self, job_id: int, name: str, to: StrPath) -> int:
        """Download one output of a job and return its size. A partial file is removed."""
        return self._run(self._client.fetch_output(job_id, name, to))

    def instance(self, instance_id: int) -> shapes.OneInstance:
        """Return an instance of a job."""
        return self._run(self._client.instance(instance_id))

    def instance_trickles(self, instance_id: int, *, limit: int | None = 1000) -> list[shapes.TrickleShown]:
        """Return the trickle messages of an instance, in order of arrival."""
        return self._run(self._client.instance_trickles(instance_id, limit=limit))

    def forecasts(self, batch_id: int, *, limit: int = 100) -> shapes.ForecastsShown:
        """Return a batch's `forecasts` in chronological order, and the `accuracy` of its app's forecasts."""
        return self._run(self._client.forecasts(batch_id, limit=limit))

    def forecast_health(self) -> list[shapes.AppForecastsShown]:
        """Return the health of each app's forecasts: ages of the latest forecasts, coverage and error."""
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
        """Explain, with a dry run, why a host gets no work, why a batch or job waits, or how a due date was set."""
        return self._run(self._client.explain(kind, identifier))

    def hosts(
        self,
        *,
        limit: int | None = 1000,
        show: HostListKind | None = None,
        silent_s: float | None = None,
        **chosen: object,
    ) -> list[shapes.ListedHostShown]:
        """Return hosts in order of id, or only some, such as slow ones, as the API's `list_hosts` defines them.

        `chosen`: platform (a part of its name), label, volunteer (an e-mail address) and sort.
        """
        return self._run(self._client.hosts(limit=limit, show=show, silent_s=silent_s, **chosen))

    def host(self, host_id: int) -> shapes.HostDetail:
        """Return a host with its statistics per app version."""
        return self._run(self._client.host(host_id))

    def set_host_labels(self, host_id: int, labels: Sequence[str], *, if_match: IfMatch = None) -> shapes.HostLabels:
        """Replace the labels of a host, for queues bound to hosts."""
        return self._run(self._client.set_host_labels(host_id, labels, if_match=if_match))

    def host_instances(self, host_id: int, *, limit: int | None = 1000) -> list[shapes.HeldShown]:
        """Return the instances in progress on a host."""
        return self._run(self._client.host_instances(host_id, limit=limit))

    def host_results(
        self, host_id: int, *, state: str | None = None, limit: int | None = 1000
    ) -> list[shapes.HostResult]:
        """Return the finished instances of a host, the last sent first, in one `state` or all."""
        return self._run(self._client.host_results(host_id, state=state, limit=limit))

    def ranking(self) -> shapes.RankingRunShown | None:
        """Return the latest host ranking; None before the first ranking."""
        return self._run(self._client.ranking())

    def host_percentiles(self, host_id: int) -> list[shapes.PercentileShown]:
        """Return a host's percentile for each app version; empty if the host is not ranked."""
        return self._run(self._client.host_percentiles(host_id))

    def attention(self) -> shapes.AttentionShown:
        """Return what needs an operator's attention, worst first."""
        return self._run(self._client.attention())

    def unschedulable(self) -> shapes.UnschedulableShown:
        """Return work that all recently active hosts refused, with the reasons, and paused work."""
        return self._run(self._client.unschedulable())

    def processes(self, *, limit: int | None = 1000) -> list[shapes.ProcessShown]:
        """Return each process's latest heartbeat within the last minute; a worker's includes its job array."""
        return self._run(self._client.processes(limit=limit))

    def samples(
        self, *series: str, over: str | None = None, from_at: float | None = None, to_at: float | None = None
    ) -> shapes.SamplesShown:
        """Return the project's figures over time, all if no `series` is named.

        `over` is hour (the default), day, week, month or year; `from_at` and `to_at` choose a part instead.
        """
        return self._run(self._client.samples(*series, over=over, from_at=from_at, to_at=to_at))

    def apps(self, *, limit: int | None = 1000) -> list[shapes.AppShown]:
        """Return all applications with their current versions."""
        return self._run(self._client.apps(limit=limit))

    def app(self, name: str) -> shapes.AppDetail:
        """Return an application with its current versions."""
        return self._run(self._client.app(name))

    def add_app(self, name: str, **more: Any) -> shapes.NewApp:
        """Add an application. `more`: user_friendly_name, beta, adaptive_copies, one_per_host, one_per_volunteer."""
        return self._run(self._client.add_app(name, **more))

    def set_app(self, name: str, *, if_match: IfMatch = None, **more: Any) -> shapes.AppShown:
        """Change an application. `more` has the fields of `add_app`, and deprecated."""
        return self._run(self._client.set_app(name, if_match=if_match, **more))

    def app_versions(self, app: str, *, limit: int | None = 1000) -> list[shapes.VersionShown]:
        """Return all versions of an application, newest first."""
        return self._run(self._client.app_versions(app, limit=limit))

    def app_use(self, app: str) -> list[shapes.VersionUseShown]:
        """Return hosts, results and failures of each version of an application, newest first."""
        return self._run(self._client.app_use(app))

    def app_version(self, app_version_id: int) -> shapes.OneVersion:
        """Return an app version with its files."""
        return self._run(self._client.app_version(app_version_id))

    def set_app_version(self, app_version_id: int, *, state: str, if_match: IfMatch = None) -> shapes.OneVersion:
        """Deprecate, withdraw or offer a version; `state`: offered, deprecated, withdrawn or aborted."""
        return self._run(self._client.set_app_version(app_version_id, state=state, if_match=if_match))

    def plan_classes(self, *, limit: int | None = 1000) -> list[shapes.PlanClassShown]:
        """Return plan classes by name."""
        return self._run(self._client.plan_classes(limit=limit))

    def plan_class(self, name: str) -> shapes.PlanClassShown:
        """Return a plan class."""
        return self._run(self._client.plan_class(name))

    def set_plan_class(self, name: str, *, if_match: IfMatch = None, **more: Any) -> shapes.PlanClassShown:
        """Define or change a plan class. `more`: the keys of `plan_classes`, which have defaults."""
        return self._run(self._client.set_plan_class(name, if_match=if_match, **more))

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
        """Add an app version (100 means 1.00) and return its id. `muster sign` makes the program's `signature`."""
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
        """Upload a file that batches can use as an input."""
        return self._run(self._client.put_file(path, name=name))

    def order(self, *, limit: int = 100) -> shapes.PrioritiesShown:
        """Return `batches` in the order of the last ordering pass, with reasons, and the `unordered` batches."""
        return self._run(self._client.order(limit=limit))

    def priorities(self, *, limit: int = 100) -> list[shapes.PriorityShown]:
        """Return batches in the order of the last ordering pass, with the terms whose points add up to `total`."""
        return self._run(self._client.priorities(limit=limit))

    def priority(self, batch_id: int) -> shapes.PriorityShown:
        """Return a batch's place in the order, with reasons."""
        return self._run(self._client.priority(batch_id))

    def weights(self) -> shapes.WeightsShown:
        """Return the terms of the active policy with their weights."""
        return self._run(self._client.weights())

    def preview_ordering(self, values: Mapping[str, object], *, limit: int = 50) -> shapes.OrderPreviewed:
        """Preview the batch order under these settings. Nothing is changed."""
        return self._run(self._client.preview_ordering(values, limit=limit))

    def set_ordering(
        self, values: Mapping[str, object], *, why: str, by: str = "api", if_match: IfMatch = None
    ) -> list[shapes.ChangeMade]:
        """Set the ordering policy and its weights; the audit trail records author and reason. Returns old and new
        values.
        """
        return self._run(self._client.set_ordering(values, why=why, by=by, if_match=if_match))

    def fairshare(self) -> list[shapes.ShareShown]:
        """Return the tree of accounts and submitters with shares and decayed usage."""
        return self._run(self._client.fairshare())

    def usage_windows(self) -> shapes.WindowsShown:
        """Return recent usage of users, groups, accounts and levels, compared with their targets."""
        return self._run(self._client.usage_windows())

    def usage_report(
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
        return self._run(
            self._client.usage_report(
                by=by, first_day=first_day, last_day=last_day, account=account, submitter=submitter
            )
        )

    def set_shares(
        self, kind: Literal["account", "submitter"], name: str, shares: float, *, account: str | None = None
    ) -> None:
        """Set the shares of an account or a submitter. With `account`, also let the submitter use that account."""
        self._run(self._client.set_shares(kind, name, shares, account=account))

    def reset_usage(self, *, why: str, submitter: str | None = None, account: str | None = None) -> int:
        """Reset the recorded usage of all or some submitters. Return the number of records changed. Grants are kept."""
        return self._run(self._client.reset_usage(why=why, submitter=submitter, account=account))

    def permit(self, kind: Literal["account", "submitter"], name: str, permissions: Sequence[str]) -> None:
        """Replace the permissions (expedite, raise) of an account or a submitter."""
        self._run(self._client.permit(kind, name, permissions))

    def emulate_fairshare(self, system: str, document: object) -> shapes.TableShown:
        """Compute fair-share for a tree as another system does: `columns` and `rows`, as that system prints them."""
        return self._run(self._client.emulate_fairshare(system, document))

    def grants(self, *, limit: int | None = 1000) -> list[shapes.GrantShown]:
        """Return the service units of accounts: granted, used, reserved and left in this period."""
        return self._run(self._client.grants(limit=limit))

    def grant(self, account: str) -> shapes.GrantShown:
        """Return an account's grant."""
        return self._run(self._client.grant(account))

    def set_grant(
        self, account: str, *, granted_su: float, period_s: float, if_match: IfMatch = None
    ) -> shapes.GrantShown:
        """Set an account's service units per period. Units already used in this period still count."""
        return self._run(self._client.set_grant(account, granted_su=granted_su, period_s=period_s, if_match=if_match))

    def take_grant(self, account: str, *, if_match: IfMatch = None) -> None:
        """Remove an account's grant, so that it no longer limits the account."""
        self._run(self._client.take_grant(account, if_match=if_match))

    def limits(self, *, limit: int | None = 1000) -> list[shapes.LimitShown]:
        """Return the limits on submitters, accounts, apps and queues."""
        return self._run(self._client.limits(limit=limit))

    def limit(self, scope: str, quantity: str, *, name: str | None = None) -> shapes.LimitShown:
        """Return the limit of one name, or the default limit."""
        return self._run(self._client.limit(scope, quantity, name=name))

    def set_limit(
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
        return self._run(self._client.set_limit(scope, quantity, name=name, soft=soft, hard=hard, if_match=if_match))

    def lift_limit(self, scope: str, quantity: str, *, name: str | None = None, if_match: IfMatch = None) -> None:
        """Remove the limit for one name, or the default limit."""
        self._run(self._client.lift_limit(scope, quantity, name=name, if_match=if_match))

    def settings(self) -> dict[str, Any]:
        """Return the values of all settings by key."""
        return self._run(self._client.settings())

    def setting(self, key: str) -> shapes.SettingShown:
        """Return a setting with its default and meaning."""
        return self._run(self._client.setting(key))

    def setting_details(self) -> list[shapes.SettingShown]:
        """Return all settings with their defaults and meanings."""
        return self._run(self._client.setting_details())

    def set_setting(self, key: str, value: object, *, why: str = "", by: str = "api", if_match: IfMatch = None) -> Any:
        """Change a setting and return the stored value. Services apply it within seconds. Thresholds need a reason."""
        return self._run(self._client.set_setting(key, value, why=why, by=by, if_match=if_match))

    def reset_setting(self, key: str, *, why: str = "", by: str = "api", if_match: IfMatch = None) -> Any:
        """Reset a setting to its default and return the default. Thresholds need a reason."""
        return self._run(self._client.reset_setting(key, why=why, by=by, if_match=if_match))

    def setting_changes(self, *, limit: int | None = 100) -> list[shapes.SettingChangeShown]:
        """Return setting changes with author, time and reason, newest first."""
        return self._run(self._client.setting_changes(limit=limit))

    def thresholds(self) -> list[shapes.ThresholdShown]:
        """Return all thresholds with their values, effects and last changes."""
        return self._run(self._client.thresholds())

    def preview_thresholds(self, values: Mapping[str, object]) -> shapes.ThresholdsPreviewed:
        """Preview the effect of these values on hosts as of `hosts_read_at` and on waiting jobs; nothing is changed."""
        return self._run(self._client.preview_thresholds(values))

    def set_thresholds(
        self, values: Mapping[str, object], *, why: str, by: str = "api", if_match: IfMatch = None
    ) -> list[shapes.ChangeMade]:
        """Change thresholds; the audit trail records author and reason. Returns old and new values."""
        return self._run(self._client.set_thresholds(values, why=why, by=by, if_match=if_match))

    def simulate_thresholds(
        self, values: Mapping[str, object], *, seeds: int = 3, hosts: int = 500, days: float = 14.0
    ) -> shapes.SimulationShown:
        """Simulate the project with its current thresholds and with these. `simulation` returns the progress."""
        return self._run(self._client.simulate_thresholds(values, seeds=seeds, hosts=hosts, days=days))

    def simulation(self, simulation_id: int) -> shapes.SimulationShown:
        """Return the progress and result of a simulation."""
        return self._run(self._client.simulation(simulation_id))

    def cancel_simulation(self, simulation_id: int) -> shapes.SimulationShown:
        """Cancel a simulation. A finished simulation stays unchanged."""
        return self._run(self._client.cancel_simulation(simulation_id))

    def restrictions(self, *, limit: int | None = 1000) -> list[shapes.RestrictionShown]:
        """Return bans and limits of volunteers and hosts, and paused work, by kind and name."""
        return self._run(self._client.restrictions(limit=limit))

    def restriction(self, kind: str, name: str) -> shapes.RestrictionShown:
        """Return the ban or limit of a `volunteer` or `host`, or the pause of an `app`, `queue` or `batch`."""
        return self._run(self._client.restriction(kind, name))

    def restrict(
        self, kind: str, name: str, *, why: str, max_jobs: int = 0, abort: bool = False, if_match: IfMatch = None
    ) -> shapes.RestrictionShown:
        """Ban a `volunteer` or `host`, or limit its jobs in progress per host; pause an `app`, `queue` or `batch`.

        `abort`: a ban ends the jobs in progress at once.
        """
        return self._run(self._client.restrict(kind, name, why=why, max_jobs=max_jobs, abort=abort, if_match=if_match))

    def lift_restriction(self, kind: str, name: str, *, if_match: IfMatch = None) -> shapes.RestrictionLifted:
        """Lift a ban or limit, or resume paused work."""
        return self._run(self._client.lift_restriction(kind, name, if_match=if_match))

    def accounts(self, *, limit: int | None = 1000) -> list[shapes.AccountShown]:
        """Return accounts by id."""
        return self._run(self._client.accounts(limit=limit))

    def account(self, name: str) -> shapes.AccountShown:
        """Return an account."""
        return self._run(self._client.account(name))

    def add_account(self, name: str, *, parent: str | None = None, shares: float = 1.0) -> shapes.NewAccount:
        """Add an account."""
        return self._run(self._client.add_account(name, parent=parent, shares=shares))

    def set_account(
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
        return self._run(
            self._client.set_account(
                name, shares=shares, permissions=permissions, parent=parent, new_name=new_name, if_match=if_match
            )
        )

    def submitters(self, *, limit: int | None = 1000) -> list[shapes.SubmitterShown]:
        """Return submitters by id."""
        return self._run(self._client.submitters(limit=limit))

    def submitter(self, name: str) -> shapes.SubmitterShown:
        """Return a submitter."""
        return self._run(self._client.submitter(name))

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
        new_name: str | None = None,
        if_match: IfMatch = None,
    ) -> shapes.SubmitterStanding:
        """Change a submitter's shares (in `account` if given), permissions and name; None keeps a value."""
        return self._run(
            self._client.set_submitter(
                name, shares=shares, account=account, permissions=permissions, new_name=new_name, if_match=if_match
            )
        )

    def account_tree(self) -> list[shapes.TreeRowShown]:
        """Return accounts, parents first, then submitters, then submitters' memberships in further accounts."""
        return self._run(self._client.account_tree())

    def load_account_tree(
        self, rows: Sequence[Mapping[str, object]], *, dry_run: bool = False
    ) -> list[shapes.TreeRowShown]:
        """Add and change accounts and submitters, all rows or none, and return the rows that differed."""
        return self._run(self._client.load_account_tree(rows, dry_run=dry_run))

    def delete_account(self, name: str, *, if_match: IfMatch = None) -> None:
        """Delete an account that has no accounts, submitters or batches."""
        self._run(self._client.delete_account(name, if_match=if_match))

    def delete_submitter(self, name: str, *, if_match: IfMatch = None) -> None:
        """Delete a submitter that has no batches."""
        self._run(self._client.delete_submitter(name, if_match=if_match))

    def volunteers(self, *, limit: int | None = 1000) -> list[shapes.VolunteerShown]:
        """Return volunteers by id."""
        return self._run(self._client.volunteers(limit=limit))

    def find_volunteers(self, text: str, *, limit: int | None = 1000) -> list[shapes.FoundVolunteer]:
        """Return volunteers with a text in their name, e-mail or a host's name, or with a host at this address."""
        return self._run(self._client.find_volunteers(text, limit=limit))

    def volunteer(self, email: str) -> shapes.VolunteerShown:
        """Return a volunteer with the preferences."""
        return self._run(self._client.volunteer(email))

    def add_volunteer(self, email: str, *, name: str = "", password: str | None = None) -> shapes.NewVolunteer:
        """Add a volunteer. The account key is shown only once."""
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
        if_match: IfMatch = None,
    ) -> shapes.VolunteerShown:
        """Change a volunteer's preferences. None keeps a value; an empty `apps` selects all apps."""
        return self._run(
            self._client.set_volunteer(
                email, beta=beta, cpu=cpu, gpu=gpu, max_jobs=max_jobs, max_cpus=max_cpus, apps=apps, if_match=if_match
            )
        )

    def me(self) -> shapes.WhoShown:
        """Return the owner and the scopes of this token."""
        return self._run(self._client.me())

    def people(self, *, limit: int | None = 1000) -> list[shapes.PersonShown]:
        """Return the users who may sign in: operators, submitters and viewers."""
        return self._run(self._client.people(limit=limit))

    def person(self, name: str) -> shapes.PersonShown:
        """Return a user who may sign in."""
        return self._run(self._client.person(name))

    def add_person(self, name: str, *, role: str = "viewer", submitter: str | None = None) -> shapes.InvitedShown:
        """Add a sign-in for an operator, submitter or viewer. The one-time password is shown only once."""
        return self._run(self._client.add_person(name, role=role, submitter=submitter))

    def set_person(
        self,
        name: str,
        *,
        role: str | None = None,
        submitter: str | None = None,
        active: bool | None = None,
        if_match: IfMatch = None,
    ) -> shapes.PersonShown:
        """Change a user's role, or disable the account (`active` False)."""
        return self._run(
            self._client.set_person(name, role=role, submitter=submitter, active=active, if_match=if_match)
        )

    def invite_again(self, name: str) -> shapes.InvitedShown:
        """Issue a new one-time password for a user who has forgotten the password."""
        return self._run(self._client.invite_again(name))

    def end_sessions(self, name: str) -> int:
        """End all sessions of a user and return their number."""
        return self._run(self._client.end_sessions(name))

    def tokens(self, *, limit: int | None = 1000) -> list[shapes.TokenShown]:
        """Return the caller's tokens, or all tokens if the caller is an operator."""
        return self._run(self._client.tokens(limit=limit))

    def add_token(
        self, name: str, *, scopes: Sequence[str] | None = None, days: int | None = None, person: str | None = None
    ) -> shapes.NewTokenShown:
        """Create a token. Its value is shown only once."""
        return self._run(self._client.add_token(name, scopes=scopes, days=days, person=person))

    def revoke_token(self, token_id: int) -> shapes.TokenShown:
        """Revoke a token."""
        return self._run(self._client.revoke_token(token_id))

    def audit(
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
        return self._run(self._client.audit(limit=limit, who=who, what=what, subject=subject, since=since, until=until))

    def subscriptions(self, *, limit: int | None = 1000) -> list[shapes.SubscriptionShown]:
        """Return the caller's subscriptions to notifications, or all of them if the caller is an operator."""
        return self._run(self._client.subscriptions(limit=limit))

    def add_subscription(
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
        return self._run(
            self._client.add_subscription(
                channel, address, kinds=kinds, project_wide=project_wide, interval_s=interval_s, person=person
            )
        )

    def set_subscription(
        self,
        subscription_id: int,
        *,
        kinds: Sequence[str] | None = None,
        interval_s: float | None = None,
        paused: bool | None = None,
    ) -> shapes.SubscriptionShown:
        """Change a subscription's events and interval, or pause it; None keeps a value."""
        return self._run(
            self._client.set_subscription(subscription_id, kinds=kinds, interval_s=interval_s, paused=paused)
        )

    def delete_subscription(self, subscription_id: int) -> shapes.SubscriptionShown:
        """Delete a subscription."""
        return self._run(self._client.delete_subscription(subscription_id))

    def rotate_secret(self, subscription_id: int) -> shapes.NewSubscriptionShown:
        """Make a new secret of a webhook; for a day, messages are also signed with the previous one."""
        return self._run(self._client.rotate_secret(subscription_id))

    def test_subscription(self, subscription_id: int) -> shapes.SubscriptionShown:
        """Send a test message."""
        return self._run(self._client.test_subscription(subscription_id))

    def deliveries(self, *, subscription_id: int | None = None, limit: int | None = 100) -> list[shapes.DeliveryShown]:
        """Return deliveries of notifications, newest first, with the outcome of their last attempt."""
        return self._run(self._client.deliveries(subscription_id=subscription_id, limit=limit))
