"""`muster host`, `attention`, `unschedulable`, `volunteer`: show hosts and problems, and manage volunteers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

import click

from cli.context import Run, as_text, command, lines_of
from domain.errors import InvalidInputError
from domain.formatting import in_words
from domain.host_lists import HostKind

if TYPE_CHECKING:
    from muster_client.work import HostListKind


ID = click.IntRange(1, 2**31 - 1)
COLUMNS = ["host_id", "volunteer_id", "domain_name", "os_name", "ncpus", "last_rpc_at"]
DID = ["in_progress", "n_valid", "n_error", "n_timeout"]
TOLD = {  # additional columns by kind of list
    HostKind.SLOW: ["app_version_id", "x", "relative_turnaround"],
    HostKind.FAILING: ["results", "errors", "invalid", "timed_out", "last_at", "since"],
}
KINDS = click.Choice(["without_work", "slow", "failing", "silent", "restricted"])
SILENCE = click.FloatRange(0.0)
HELD = ["instance_id", "job_id", "batch_id", "app", "due_at", "est_runtime_s", "tight"]


@click.group()
def host() -> None:
    """Show volunteers' hosts, and label them."""


@host.command("list")
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=1000, show_default=True, help="Maximum number of hosts."
)
@click.option(
    "--show",
    type=KINDS,
    help="List only hosts without work, slow, failing, silent or restricted ones, worst or newest first.",
)
@click.option(
    "--silent-s", type=SILENCE, help="Minimum time since the last request, for --show silent; default: one week."
)
@click.option("--platform", help="List only hosts with this part in a platform's name, newest first.")
@click.option("--label", help="List only hosts with this label, newest first.")
@click.option("--volunteer", metavar="EMAIL", help="List only hosts of this volunteer, newest first.")
@click.option("--sort", metavar="KEY", help="id, last_contact, cpus, memory or availability; -KEY for descending.")
@command
async def list_hosts(
    run: Run, limit: int, show: HostListKind | None, silent_s: float | None, **chosen: str | None
) -> None:
    """List hosts by id, or only hosts without work, slow, failing, silent or restricted hosts.

    slow: the slowest tenth of each app and processor in the last full ranking, once per app version. failing: those
    of muster attention, at least half of whose results of the last day failed. restricted: hosts that are banned or
    limited, or whose volunteer is.
    """
    kind = None if show is None else HostKind(show)
    if silent_s is not None and kind is not HostKind.SILENT:
        raise InvalidInputError("silent_s", "no value without --show silent", silent_s)

    rows = await run.ask(lambda client: client.hosts(limit=limit, show=show, silent_s=silent_s, **chosen))
    narrowed = kind is not None or any(chosen.values())
    empty = "No such hosts." if narrowed else "No host has contacted the server yet."
    told = TOLD.get(kind, []) if kind is not None else []
    flat = rows if run.as_json else [{**one, **(one["slow"] or {}), **(one["failures"] or {})} for one in rows]
    run.show_table(flat, [*COLUMNS, *DID, *told], empty)


@host.command("show")
@click.argument("host_id", type=ID)
@command
async def show_host(run: Run, host_id: int) -> None:
    """Show a host with its statistics for each app version."""
    shown = await run.ask(lambda client: client.host(host_id))
    parts = [lines_of({key: value for key, value in shown.items() if key != "app_versions"})]
    parts += ["  " + lines_of(one).replace("\n", "\n  ") for one in shown["app_versions"]]
    run.show(shown, "\n\n".join(parts))


@host.command("set")
@click.argument("host_id", type=ID)
@click.option(
    "--label",
    "labels",
    multiple=True,
    help="Label for ordering.queue_hosts. The labels given replace all existing labels.",
)
@click.option("--no-labels", is_flag=True, help="Remove all labels.")
@command
async def set_host(run: Run, host_id: int, labels: tuple[str, ...], no_labels: bool) -> None:
    """Replace the labels of a host. Queues can be bound to labels."""
    if bool(labels) == no_labels:
        raise InvalidInputError("--label", "--label, or --no-labels", "both" if labels else "none")

    shown = await run.ask(lambda client: client.set_host_labels(host_id, labels))
    run.show(shown, f"host {host_id}: {', '.join(shown['labels']) or 'no labels'}")


@host.command("instances")
@click.argument("host_id", type=ID)
@command
async def list_instances(run: Run, host_id: int) -> None:
    """List the instances in progress on a host, by id."""
    rows = await run.ask(lambda client: client.host_instances(host_id, limit=None))
    run.show_table(rows, HELD, f"Host {host_id} has no instances in progress.")


@click.command()
@command
async def unschedulable(run: Run) -> None:
    """Show work that no active host can run, and work that hosts refused so far, with the reasons."""
    found = await run.ask(lambda client: client.unschedulable())
    lines = [f"{one['kind']} {one['name']}: paused by {one['set_by']}: {one['why']}" for one in found["paused"]]
    for one in found["refused"]:
        since = datetime.fromtimestamp(one["since_at"], UTC).strftime("%Y-%m-%d %H:%M UTC")
        refused = f"refused by {one['hosts']} hosts since {since} ({as_text(one['codes'])})"
        lines.append(
            f"batch {one['batch_id']}: {'unschedulable, ' if one['is_certain'] else ''}{one['waiting']} slots, "
            f"{'of an app without a version' if one['lost'] else refused}"
        )
        lines.append(f"  {one['verdict']}")
        if not one["is_certain"]:
            more = f"after {one['more_hosts']} more hosts or {in_words(one['more_s'])}"
            soon = "being judged with the active hosts"
            lines.append(f"  not certain yet: {'judged ' + more if one['more_hosts'] and one['more_s'] else soon}")
        lines += [f"  {one['advice']}"] if one["advice"] else []
    if found["left_out"]:
        lines.append(f"{found['left_out']} further batches are of an app without a version")
    run.show(found, "\n".join(lines) or "No unschedulable work: hosts take every kind of slot offered to them.")


@click.command()
@command
async def attention(run: Run) -> None:
    """Show what needs attention, worst first: batches, app versions, hosts, periodic tasks, disks, backups."""
    found = await run.ask(lambda client: client.attention())
    lines = []
    for one in found["items"]:
        lines += [f"{'SEVERE ' if one['severe'] else ''}{one['subject']}: {one['sentence']}", f"  {one['remedy']}"]
    if found["left_out"]:
        lines.append(f"{found['left_out']} further batches are late, failing or of an app without a version")
    run.show(found, "\n".join(lines) or "Nothing needs attention.")


@click.group()
def volunteer() -> None:
    """Manage volunteers' accounts."""


def password_in(file: TextIO, *, given: str | None) -> str:
    """Return the password on the file's first line. Raises InvalidInputError if it is empty or --password is given.

    >>> import io
    >>> password_in(io.StringIO("correct horse\\n"), given=None)
    'correct horse'
    """
    if given is not None:
        raise InvalidInputError("--password-file", "only one of --password-file and --password", "both")
    found = file.readline().rstrip("\r\n")
    if not found:
        raise InvalidInputError("--password-file", "a password in the first line", "an empty line")
    return found


@volunteer.command("add")
@click.argument("email")
@click.option("--name", default="", help="Public name of the volunteer.")
@click.option("--password", default=None, help="Password to attach with; visible to other users of this machine.")
@click.option("--password-file", type=click.File(), help="File whose first line is the password; - = standard input.")
@command
async def add(run: Run, email: str, name: str, password: str | None, password_file: TextIO | None) -> None:
    """Add a volunteer and print the account key, which is shown only once."""
    if password_file is not None:
        password = password_in(password_file, given=password)

    added = await run.ask(lambda client: client.add_volunteer(email, name=name, password=password))
    run.show(added, f"volunteer {added['volunteer_id']}\naccount key {added['authenticator']}")


@volunteer.command("list")
@command
async def list_volunteers(run: Run) -> None:
    """List volunteers."""
    rows = await run.ask(lambda client: client.volunteers(limit=None))
    run.show_table(rows, ["volunteer_id", "email", "name", "beta"], "No volunteers yet: muster volunteer add EMAIL")


@volunteer.command("find")
@click.argument("text")
@command
async def find_volunteers(run: Run, text: str) -> None:
    """Find volunteers by name, e-mail, host name or the address of a host, newest first."""
    rows = await run.ask(lambda client: client.find_volunteers(text, limit=None))
    columns = ["volunteer_id", "email", "name", "hosts", "last_rpc_at", "credit"]
    run.show_table(rows, columns, "No matching volunteers.")


@volunteer.command("set")
@click.argument("email")
@click.option("--beta/--no-beta", default=None, help="Accept beta applications.")
@click.option("--gpu/--no-gpu", default=None, help="Accept jobs that use GPUs.")
@click.option("--cpu/--no-cpu", default=None, help="Accept jobs without a GPU.")
@click.option(
    "--max-jobs", type=click.IntRange(min=0), default=None, help="Maximum jobs in progress per host; 0 = no limit."
)
@click.option("--max-cpus", type=click.IntRange(min=0), default=None, help="Maximum CPUs per job; 0 = no limit.")
@click.option("--app", "apps", multiple=True, help="Accept only this application; may be repeated.")
@click.option("--all-apps", is_flag=True, help="Accept all applications, including future ones.")
@command
async def set_volunteer(run: Run, email: str, apps: tuple[str, ...], all_apps: bool, **wishes: Any) -> None:
    """Change a volunteer's preferences."""
    if apps and all_apps:
        raise InvalidInputError("--all-apps", "only one of --all-apps and --app", "both")
    chosen = list(apps) if apps or all_apps else None

    shown = await run.ask(lambda client: client.set_volunteer(email, apps=chosen, **wishes))
    run.show(shown, f"volunteer {shown['volunteer_id']} changed")
