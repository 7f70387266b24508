"""`muster app`: manage applications, their versions and plan classes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.context import NotThroughServerError, Run, command, lines_of
from domain.apps import OnePerVolunteer, VersionState
from domain.errors import InvalidInputError

if TYPE_CHECKING:
    from administration.apps import Sign
    from muster_client.shapes import FailuresShown


READABLE = click.Path(path_type=Path, exists=True, dir_okay=False)
ONE_PER_HOST = click.option(
    "--one-per-host/--several-per-host",
    default=None,
    help="Send a host at most one instance of a job (default), or allow it to get the retry of a job that it had "
    "before.",
)
ONE_PER_VOLUNTEER = click.option(
    "--one-per-volunteer",
    type=click.Choice([rule.value for rule in OnePerVolunteer]),
    default=None,
    help="Limit each volunteer to one instance of a job, over all hosts: if the job needs a quorum (default), "
    "always, or never.",
)


@click.group()
def app() -> None:
    """Manage applications."""


@app.command("add")
@click.argument("name")
@click.option("--friendly-name", "user_friendly_name", default="", help="Name shown to volunteers.")
@click.option("--beta", is_flag=True, help="Send jobs only to volunteers who opted in.")
@click.option(
    "--adaptive-copies",
    type=click.IntRange(0, 10),
    default=0,
    help="Adaptive replication: number of copies of a job whose host is not trusted yet; 0 = off.",
)
@ONE_PER_HOST
@ONE_PER_VOLUNTEER
@command
async def add_app(run: Run, name: str, **given: Any) -> None:
    """Add an application."""
    added = await run.ask(lambda client: client.add_app(name, **_told(given)))
    run.show(added, f"app {added['app_id']} {name}")


@app.command("new")
@click.argument("name")
@click.option("--template", type=click.Choice(["script", "wrapper", "docker", "gpu"]), default="script")
@click.option("--to", "folder", type=click.Path(path_type=Path), default=None, help="New folder; by default NAME.")
@command
async def new(run: Run, name: str, template: str, folder: Path | None) -> None:
    """Write the files of a new application to a folder: program, batch, and add.sh with the commands that add it."""
    from administration.names import checked_app_name
    from cli.skeletons import EXECUTABLE, WRAPPERS, files_of

    folder = Path(checked_app_name(name)) if folder is None else folder
    if folder.exists():
        raise InvalidInputError("--to", "a folder that does not exist yet", str(folder))
    folder.mkdir(parents=True)
    made = files_of(name, template)
    for file, text in made.items():
        (folder / file).write_text(text)
        (folder / file).chmod(0o755 if file.endswith(EXECUTABLE) else 0o644)
    lines = [f"{folder}: {', '.join(sorted(made))}"]
    if template in WRAPPERS:
        lines.append(f"copy BOINC's {WRAPPERS[template]} into it: docs/how-to/use-the-wrapper.md")
    lines.append(f"then: cd {folder} && ./add.sh && muster batch submit batch.toml")
    run.show({"folder": str(folder), "files": sorted(made)}, "\n".join(lines))


@app.command("list")
@command
async def list_apps(run: Run) -> None:
    """List applications and their current versions."""
    rows = await run.ask(lambda client: client.apps(limit=None))
    run.show_table(rows, ["app_id", "name", "beta", "versions"], "No apps yet: muster app add NAME")


@app.command("set")
@click.argument("name")
@click.option("--friendly-name", "user_friendly_name", default=None, help="Name shown to volunteers.")
@click.option("--beta/--no-beta", default=None, help="Send jobs only to volunteers who opted in.")
@click.option("--deprecated/--not-deprecated", default=None, help="Accept no new batches, and send no waiting jobs.")
@click.option(
    "--adaptive-copies",
    type=click.IntRange(0, 10),
    default=None,
    help="Adaptive replication: number of copies of a job whose host is not trusted yet; 0 = off.",
)
@ONE_PER_HOST
@ONE_PER_VOLUNTEER
@command
async def set_app(run: Run, name: str, **given: Any) -> None:
    """Change an application; running services apply it within seconds.

    Instances already sent count towards new limits, but are not cancelled.
    """
    shown = await run.ask(lambda client: client.set_app(name, **_told(given)))
    run.show(shown, lines_of(shown))


def _told(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given."""
    return {key: value for key, value in given.items() if value is not None}


@app.group("version")
def version() -> None:
    """Manage versions of an application."""


@version.command("add")
@click.argument("name")
@click.option("--platform", required=True, help="BOINC platform, such as x86_64-pc-linux-gnu.")
@click.option(
    "--version", "version_num", type=click.IntRange(1, 2**31 - 1), required=True, help="Version number; 100 means 1.00."
)
@click.option("--main", "main_program", type=READABLE, required=True)
@click.option(
    "--file",
    "copies",
    metavar="[NAME=]PATH",
    multiple=True,
    help="Additional file, copied into the folder of each job, as NAME or under its own name.",
)
@click.option(
    "--link",
    "links",
    metavar="[NAME=]PATH",
    multiple=True,
    help="Additional file that all jobs share: NAME in a job's folder is a BOINC link to it, not a copy.",
)
@click.option("--plan-class", default="", help="Plan class; see `muster app plan-class set`.")
@click.option("--api-version", default="7.5.0", show_default=True, help="Version of the BOINC API that the app uses.")
@click.option(
    "--signatures",
    type=READABLE,
    default=None,
    help="Signatures written by `muster sign --key` on another machine; the private key is not needed here.",
)
@click.option(
    "--key",
    type=READABLE,
    default=None,
    help="Sign with this private key on this machine; only signatures are sent to the server.",
)
@command
async def add_version(
    run: Run,
    name: str,
    platform: str,
    version_num: int,
    main_program: Path,
    copies: tuple[str, ...],
    links: tuple[str, ...],
    plan_class: str,
    api_version: str,
    signatures: Path | None,
    key: Path | None,
) -> None:
    """Sign an application's files and offer them to clients.

    Without --signatures and --key, the project's own private key signs. Servers never use that key.
    """
    from administration.apps import MoreFile, VersionDraft, add_app_version
    from administration.signing import with_project_key
    from transfer.files import content_of

    if signatures is not None and key is not None:
        raise InvalidInputError("--key", "either --key or --signatures", "both")

    sign = _signer(signatures, key)
    more_files = (*map(MoreFile.parse, copies), *(MoreFile.parse(one, link=True) for one in links))
    added: int
    if run.server is None:
        new = VersionDraft(name, platform, version_num, main_program, more_files, plan_class, api_version)
        project = run.project()
        async with run.store() as store:
            added = await add_app_version(
                store.applications,
                project,
                new,
                clock=run.clock,
                sign=sign or with_project_key(project),
                files=await run.files(store),
            )
    elif more_files:
        raise NotThroughServerError(
            "--file and --link do not work through a server: add the version on the project's machine"
        )
    elif sign is None:
        raise InvalidInputError(
            "--key", "the private key to sign with, or --signatures written by `muster sign --key`", "neither"
        )
    else:
        signature = sign(main_program.name, content_of(main_program).md5)
        async with run.client() as client:
            added = await client.add_version(
                name,
                main_program,
                platform=platform,
                version=version_num,
                signature=signature,
                plan_class=plan_class,
                api_version=api_version,
            )
    run.show({"app_version_id": added}, f"app version {added}: {name} {version_num / 100:.2f} {platform}")


VERSION_ID = click.argument("app_version_id", type=click.IntRange(1, 2**31 - 1))


@version.command("list")
@click.argument("name")
@command
async def list_versions(run: Run, name: str) -> None:
    """List all versions of an application, newest first."""
    rows = await run.ask(lambda client: client.app_versions(name, limit=None))
    columns = ["app_version_id", "version_num", "platform", "plan_class", "state"]
    run.show_table(rows, columns, f"No versions yet: muster app version add {name}")


@version.command("use")
@click.argument("name")
@command
async def list_use(run: Run, name: str) -> None:
    """List hosts, results and recent failures of each version, newest first.

    Results and hosts are counted since the version was added, failures in the last week.
    """
    rows = await run.ask(lambda client: client.app_use(name))
    flat = rows if run.as_json else [{**one, "failures": sum_of(one["failures"])} for one in rows]
    columns = ["app_version_id", "version_num", "platform", "plan_class", "state", "hosts", "recent_hosts"]
    run.show_table(flat, [*columns, "valid", "errors", "timed_out", "failures"], f"{name} has no versions.")


def sum_of(failures: FailuresShown | None) -> int:
    return 0 if failures is None else failures["errors"] + failures["invalid"] + failures["timed_out"]


@version.command("show")
@VERSION_ID
@command
async def show_version(run: Run, app_version_id: int) -> None:
    """Show an app version and its files."""
    shown = await run.ask(lambda client: client.app_version(app_version_id))
    files = [f"  {one['name']} as {one['open_name'] or 'the program'}, {one['nbytes']} bytes" for one in shown["files"]]
    rest = lines_of({key: value for key, value in shown.items() if key != "files"})
    run.show(shown, "\n".join([rest, "files", *files]))


@version.command("deprecate")
@VERSION_ID
@command
async def deprecate_version(run: Run, app_version_id: int) -> None:
    """Send no more jobs with a version. Its jobs in progress continue.

    Hosts get the highest version for their platform that is still offered.
    """
    await _set_state(run, app_version_id, "deprecated")


@version.command("withdraw")
@VERSION_ID
@click.option("--abort/--leave", required=True, help="Abort its jobs in progress as hosts call, or let them finish.")
@command
async def withdraw_version(run: Run, app_version_id: int, abort: bool) -> None:
    """Send no more jobs with a broken version, not even those that a host has lost."""
    await _set_state(run, app_version_id, "aborted" if abort else "withdrawn")


@version.command("offer")
@VERSION_ID
@command
async def offer_version(run: Run, app_version_id: int) -> None:
    """Offer a deprecated or withdrawn version again."""
    await _set_state(run, app_version_id, "offered")


async def _set_state(run: Run, app_version_id: int, state: str) -> None:
    shown = await run.ask(lambda client: client.set_app_version(app_version_id, state=state))
    run.show(shown, f"app version {app_version_id}: {VersionState(shown['state']).words}")


def _signer(signatures: Path | None, key: Path | None) -> Sign | None:
    """Return the signer that the options name, a document of signatures or a key, None without either."""
    from administration.signing import with_key_file
    from transfer.keys import read_signatures

    if signatures is not None:
        return read_signatures(signatures).of
    return None if key is None else with_key_file(key)


@app.group("plan-class")
def plan_class() -> None:
    """Manage plan classes: the resources that app versions use and require."""


@plan_class.command("set")
@click.argument("name")
@click.option("--ncpus", type=click.FloatRange(min=0), default=1.0, show_default=True)
@click.option("--gpu-type", default=None, help="NVIDIA, ATI, intel_gpu, or a custom coprocessor type.")
@click.option("--gpu-count", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True)
@click.option("--min-gpu-ram-bytes", type=click.FloatRange(min=0), default=0.0)
@click.option("--min-driver-version", type=click.IntRange(min=0), default=0)
@click.option("--min-host-ncpus", type=click.IntRange(min=1), default=1)
@click.option("--min-host-ram-bytes", type=click.FloatRange(min=0), default=0.0)
@click.option("--os-pattern", default="", help="A regular expression to find in the host's OS name and version.")
@click.option("--cpu-speed-fraction", type=click.FloatRange(min=0, min_open=True), default=1.0)
@click.option("--gpu-speed-fraction", type=click.FloatRange(min=0, min_open=True), default=0.1)
@click.option("--needs", type=click.Choice(["docker", "virtualbox"]), default=None, help="docker also means Podman.")
@click.option("--arguments", default="", help="Added after a job's arguments; {ncpus} is the number of CPUs it uses.")
@click.option("--all-cpus", is_flag=True, help="A job uses all CPUs that the host offers, and at least --ncpus.")
@command
async def set_plan_class(run: Run, name: str, **given: Any) -> None:
    """Define or change a plan class."""
    await run.ask(lambda client: client.set_plan_class(name, **{**given, "needs": given["needs"] or ""}))
    run.show({"plan_class": name}, f"plan class {name}")


@plan_class.command("list")
@command
async def list_plan_classes(run: Run) -> None:
    """List plan classes."""
    rows = await run.ask(lambda client: client.plan_classes(limit=None))
    run.show_table(rows, ["name", "ncpus", "gpu_type", "gpu_count"], "")
