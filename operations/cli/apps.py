"""`muster app`: applications, their versions and plan classes."""

from __future__ import annotations

import re
from pathlib import Path

import click

from domain.apps import App, PlanClass, ProcessorType
from domain.errors import InvalidInputError
from domain.units import AppId
from operations.applications import NewVersion, add_app_version
from operations.cli.context import Run, command
from operations.cli.remote import or_remote
from operations.names import checked_app_name, checked_plan_class_name, checked_text
from operations.show import app_as_json


def checked_pattern(pattern: str) -> str:
    """A regular expression that compiles. Raises InvalidInputError.

    >>> checked_pattern("Linux.*Debian")
    'Linux.*Debian'
    """
    try:
        re.compile(pattern)
    except re.error as error:
        raise InvalidInputError("os-pattern", "a regular expression", f"{pattern}: {error}") from None
    return pattern


@click.group()
def app() -> None:
    """Applications."""


@app.command("add")
@click.argument("name")
@click.option("--friendly-name", default="", help="As volunteers see it.")
@click.option("--beta", is_flag=True, help="Only for volunteers who opted in.")
@click.option(
    "--adaptive-copies",
    type=click.IntRange(0, 10),
    default=0,
    help="Copies of a job on a host without a record; 0 = off.",
)
@command
async def add_app(run: Run, name: str, friendly_name: str, beta: bool, adaptive_copies: int) -> None:
    """Add an application."""
    new = App(
        AppId(0),
        checked_app_name(name),
        user_friendly_name=checked_text(friendly_name, "friendly-name"),
        beta=beta,
        adaptive_copies=adaptive_copies,
    )
    async with run.store() as store:
        added = await store.applications.add_app(new)
    run.show({"app_id": added.app_id, "name": name}, f"app {added.app_id} {name}")


@app.command("list")
@or_remote(lambda client: client.apps())
@command
async def list_apps(run: Run) -> None:
    """List applications and their current versions."""
    async with run.store() as store:
        catalogue = await store.applications.load_catalogue()
    rows = [app_as_json(one, catalogue) for one in catalogue.apps.values()]
    run.show_table(rows, ["app_id", "name", "beta", "versions"], "No apps yet: muster app add NAME")


@app.group("version")
def version() -> None:
    """Versions of an application."""


@version.command("add")
@click.argument("name")
@click.option("--platform", required=True, help="For example x86_64-pc-linux-gnu.")
@click.option("--version", "version_num", type=click.IntRange(1, 2**31 - 1), required=True, help="100 means 1.00.")
@click.option("--main", "main_program", type=click.Path(path_type=Path, exists=True, dir_okay=False), required=True)
@click.option(
    "--file",
    "more_files",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    multiple=True,
    help="A further file, copied into the job's folder under its own name.",
)
@click.option("--plan-class", default="", help="See `muster app plan-class set`.")
@click.option("--api-version", default="7.5.0", show_default=True, help="Of the client's interface the app uses.")
@command
async def add_version(
    run: Run,
    name: str,
    platform: str,
    version_num: int,
    main_program: Path,
    more_files: tuple[Path, ...],
    plan_class: str,
    api_version: str,
) -> None:
    """Sign an application's files and offer them to clients."""
    new = NewVersion(name, platform, version_num, main_program, more_files, plan_class, api_version)
    async with run.store() as store:
        version_id = await add_app_version(store.applications, run.project(), new, clock=run.clock)
    run.show({"app_version_id": version_id}, f"app version {version_id}: {name} {version_num / 100:.2f} {platform}")


@app.group("plan-class")
def plan_class() -> None:
    """What kinds of app versions use and need of a host."""


@plan_class.command("set")
@click.argument("name")
@click.option("--ncpus", type=click.FloatRange(min=0), default=1.0, show_default=True)
@click.option("--gpu-type", default=None, help="NVIDIA, ATI, intel_gpu, or a coprocessor type of your own.")
@click.option("--gpu-count", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True)
@click.option("--min-gpu-ram-bytes", type=click.FloatRange(min=0), default=0.0)
@click.option("--min-driver-version", type=click.IntRange(min=0), default=0)
@click.option("--min-host-ncpus", type=click.IntRange(min=1), default=1)
@click.option("--min-host-ram-bytes", type=click.FloatRange(min=0), default=0.0)
@click.option("--os-pattern", default="", help="A regular expression found in the host's OS name and version.")
@click.option("--cpu-speed-fraction", type=click.FloatRange(min=0, min_open=True), default=1.0)
@click.option("--gpu-speed-fraction", type=click.FloatRange(min=0, min_open=True), default=0.1)
@command
async def set_plan_class(
    run: Run,
    name: str,
    gpu_type: str | None,
    ncpus: float,
    gpu_count: float,
    min_gpu_ram_bytes: float,
    min_driver_version: int,
    min_host_ncpus: int,
    min_host_ram_bytes: float,
    os_pattern: str,
    cpu_speed_fraction: float,
    gpu_speed_fraction: float,
) -> None:
    """Define or change a plan class."""
    new = PlanClass(
        checked_plan_class_name(name),
        ncpus=ncpus,
        gpu_type=ProcessorType(gpu_type) if gpu_type is not None else None,
        gpu_count=gpu_count,
        min_gpu_ram_bytes=min_gpu_ram_bytes,
        min_driver_version=min_driver_version,
        min_host_ncpus=min_host_ncpus,
        min_host_ram_bytes=min_host_ram_bytes,
        os_pattern=checked_pattern(os_pattern),
        cpu_speed_fraction=cpu_speed_fraction,
        gpu_speed_fraction=gpu_speed_fraction,
    )
    async with run.store() as store:
        await store.applications.put_plan_class(new)
    run.show({"plan_class": name}, f"plan class {name}")


@plan_class.command("list")
@command
async def list_plan_classes(run: Run) -> None:
    """List plan classes."""
    async with run.store() as store:
        classes = await store.applications.plan_classes()
    rows: list[dict[str, object]] = [
        {"name": c.name, "ncpus": c.ncpus, "gpu_type": c.gpu_type, "gpu_count": c.gpu_count} for c in classes.values()
    ]
    run.show_table(rows, ["name", "ncpus", "gpu_type", "gpu_count"], "")
