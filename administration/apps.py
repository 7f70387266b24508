"""Manages applications, plan classes and app versions with their signed files, and finds apps whose jobs are not sent.

This module does not read private keys: the caller passes a signing function (administration/signing.py).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from administration.access.trail import trail_page
from administration.names import checked_app_name, checked_plan_class_name, checked_text
from administration.project import Project
from domain.access import Act, ActChoice
from domain.apps import App, AppFile, AppVersion, PlanClass, ProcessorType, VersionState
from domain.attention import FailingVersion
from domain.bounds import in_bounds
from domain.catalogue import Catalogue, current_versions
from domain.clock import Clock
from domain.errors import InvalidInputError, NotFoundError
from domain.settings import Settings
from domain.units import AppId, AppVersionId, Instant, utc
from store.applications import PostgresApplications
from store.people import PostgresAccess
from transfer.files import content_of
from transfer.keys import load_public_key
from transfer.project_files import ProjectFiles
from wire.signing import PublicKey, verify_md5
from wire.uploads import valid_file_name

MOST_COPIES = 10
NEEDS = ("", "docker", "virtualbox")  # of a plan class
_BOUNDED = (  # fields of a plan class with a range
    "gpu_count",
    "min_gpu_ram_bytes",
    "min_driver_version",
    "min_host_ncpus",
    "min_host_ram_bytes",
    "cpu_speed_fraction",
    "gpu_speed_fraction",
)
_ASKED = (  # of a host, by a plan class
    "gpu_type",
    "min_gpu_ram_bytes",
    "min_driver_version",
    "min_host_ncpus",
    "min_host_ram_bytes",
    "os_pattern",
    "needs",
)
CHANGEABLE = "user_friendly_name, beta, deprecated, adaptive_copies, one_per_host or one_per_volunteer"


def new_app(name: str, **values: Any) -> App:
    """Return a new app from values by field name. Raises InvalidInputError."""
    app = _checked_app(App(AppId(0), name, **values))
    checked_app_name(name)
    return app


async def change_app(applications: PostgresApplications, name: str, **changes: Any) -> App:
    """Change fields of an app; None leaves a field unchanged. Raises InvalidInputError, NotFoundError."""
    given = {field: value for field, value in changes.items() if value is not None}
    if not given:
        raise InvalidInputError("app", f"a change of {CHANGEABLE}", "none")
    _checked_app(App(AppId(0), "", **given))
    changed = replace(await applications.app(checked_app_name(name)), **given)
    await applications.set_app(changed)
    return changed


def _checked_app(app: App) -> App:
    checked_text(app.user_friendly_name, "user_friendly_name")
    if not 0 <= app.adaptive_copies <= MOST_COPIES:
        raise InvalidInputError("adaptive_copies", f"a whole number from 0 to {MOST_COPIES}", app.adaptive_copies)
    return app


def plan_class_of(values: dict[str, object]) -> PlanClass:
    """Return a plan class from type-checked values by field name. Raises InvalidInputError.

    >>> plan_class_of({"name": "mt", "ncpus": 4.0}).ncpus
    4.0
    """
    made = PlanClass(**values)  # type: ignore[arg-type]  # by name
    checked_plan_class_name(made.name)
    checked_pattern(made.os_pattern)
    in_bounds("plan_class.ncpus", made.ncpus, field="ncpus")
    for name in _BOUNDED:
        in_bounds(name, getattr(made, name))
    if made.needs not in NEEDS:
        raise InvalidInputError("needs", f"one of {', '.join(NEEDS[1:])}, or empty", made.needs)
    checked_text(made.arguments, "arguments")
    if made.gpu_type is not None:
        checked_text(made.gpu_type, "gpu_type")
    return replace(made, gpu_type=None if made.gpu_type is None else ProcessorType(made.gpu_type))


def checked_pattern(pattern: str) -> str:
    """Return the pattern if it is a valid regular expression. Raises InvalidInputError.

    >>> checked_pattern("Linux.*Debian")
    'Linux.*Debian'
    """
    try:
        re.compile(pattern)
    except re.error as error:
        raise InvalidInputError("os_pattern", "a regular expression", f"{pattern}: {error}") from None
    return pattern


Sign = Callable[[str, str], str]  # a file's name and MD5 -> its signature

PLATFORM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}")


@dataclass(frozen=True, slots=True)
class MoreFile:
    """A further file of a version: a copy of it, or a link to it, is in each job's folder under `open_name`."""

    path: Path
    open_name: str
    link: bool = False

    @classmethod
    def parse(cls, text: str, *, link: bool = False) -> MoreFile:
        """Return the file of an option: PATH, or NAME=PATH. Raises InvalidInputError.

        >>> MoreFile.parse("lib/table.csv").open_name, str(MoreFile.parse("table=lib/table-v2.csv", link=True).path)
        ('table.csv', 'lib/table-v2.csv')
        """
        name, equals, path = text.partition("=")
        file = Path(path if equals else text)
        open_name = name if equals else file.name
        if not valid_file_name(open_name):
            raise InvalidInputError("file", "PATH or NAME=PATH, where NAME has no folder", text)
        return cls(file, open_name, link)


@dataclass(frozen=True, slots=True)
class VersionDraft:
    """An app version to add. A `version_num` of 100 means 1.00."""

    app: str
    platform: str
    version_num: int
    main_program: Path
    more_files: tuple[MoreFile, ...] = ()
    plan_class: str = ""
    api_version: str = "7.5.0"


async def add_app_version(
    applications: PostgresApplications,
    project: Project,
    new: VersionDraft,
    *,
    clock: Clock,
    sign: Sign,
    files: ProjectFiles | None = None,
) -> AppVersionId:
    """Sign and store the files, then add the version. It is safe to repeat this after an interruption.

    `files` None: the project's files are in its directory.

    Raises NotFoundError (app, plan class), AlreadyExistsError (version), or InvalidInputError, which includes a
    signature not made with the project's current key.
    """
    app = await applications.app(checked_app_name(new.app))
    api_version = checked_text(new.api_version, "api-version")
    plan_class = await _plan_class(applications, new.plan_class)
    if not PLATFORM_NAME.fullmatch(new.platform):
        raise InvalidInputError("platform", "a platform such as x86_64-pc-linux-gnu", new.platform)
    public_key = await asyncio.to_thread(load_public_key, project.keys_dir)
    sign = _checked(sign, public_key)
    _check_names([one.open_name for one in new.more_files])
    stored = files or ProjectFiles(project.files_dir)
    signed_files = []
    for source in (MoreFile(new.main_program, ""), *new.more_files):
        signed = await _signed_file(stored, new, source, sign)
        await applications.add_file(
            signed.name, nbytes=signed.nbytes, md5=signed.md5, signature=signed.signature, now=clock.now()
        )
        signed_files.append(signed)
    return await applications.add_app_version(
        AppVersion(
            AppVersionId(0),
            app.app_id,
            new.platform,
            new.version_num,
            plan_class,
            api_version,
            tuple(signed_files),
            created_at=clock.now(),
        )
    )


def _check_names(names: Sequence[str]) -> None:
    """Raises InvalidInputError for two files under one name."""
    for name in names:
        if names.count(name) > 1:
            raise InvalidInputError("file", "a different name for each file: NAME=PATH", name)


def app_file_name(app: str, source: Path, md5: str) -> str:
    """Return a name that is unique to the app and the content: clients fetch an unchanged file of a new version once.

    >>> app_file_name("pi", Path("main.py"), "0123456789abcdef" * 2)
    'pi_main_0123456789abcdef0123456789abcdef.py'
    """
    suffix = source.suffix if re.fullmatch(r"\.[A-Za-z0-9]{1,8}", source.suffix) else ""
    return f"{app}_{re.sub(r'[^A-Za-z0-9_-]', '-', source.stem)[:80]}_{md5}{suffix}"


async def _plan_class(applications: PostgresApplications, name: str) -> PlanClass:
    plan_class = (await applications.plan_classes()).get(name)
    if plan_class is None:
        raise NotFoundError("plan class", f"{name!r}: define it with `muster app plan-class set`")
    return plan_class


def _checked(sign: Sign, project_key: PublicKey) -> Sign:
    """Return `sign` with a check against the project's key, the only key that clients accept."""

    def signed(name: str, md5: str) -> str:
        signature = sign(name, md5)
        if not verify_md5(project_key, md5, signature):
            raise InvalidInputError(
                "signature",
                f"a signature of {name} made with the project's current key",
                "a signature made with another key",
            )
        return signature

    return signed


async def _signed_file(files: ProjectFiles, new: VersionDraft, source: MoreFile, sign: Sign) -> AppFile:
    main = not source.open_name
    if not await asyncio.to_thread(source.path.is_file):
        raise InvalidInputError("main" if main else "file", "a file", str(source.path))
    content = await asyncio.to_thread(content_of, source.path)
    name = app_file_name(new.app, source.path, content.md5)
    signature = sign(source.path.name, content.md5)
    content = await files.register(source.path, name, max_bytes=Settings().files.max_input_bytes)
    return AppFile(
        name,
        content.nbytes,
        content.md5,
        signature,
        main_program=main,
        open_name=source.open_name,
        copy_file=not main and not source.link,
    )


def hosts_of(versions: Iterable[AppVersion], platforms: Mapping[tuple[str, ...], int]) -> int:
    """Return how many hosts have the platform of one of these versions. `platforms`: hosts by their platforms.

    >>> hosts_of([], {("x86_64-pc-linux-gnu",): 3})
    0
    """
    served = {one.platform for one in versions}
    return sum(hosts for names, hosts in platforms.items() if not served.isdisjoint(names))


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """What an app loses without one of its versions: `lost` of its `hosts` have no other version for their platform.

    `at_most` lose it if no host meets the plan classes of `limited`. `others` get its jobs then, each with the words
    of its failures, "" if it does not fail.
    """

    hosts: int
    lost: int
    others: Sequence[tuple[AppVersion, str]]
    at_most: int
    limited: Sequence[str]


def withdrawal_of(
    version: AppVersion,
    catalogue: Catalogue,
    platforms: Mapping[tuple[str, ...], int],
    failing: Iterable[FailingVersion],
) -> Withdrawal:
    """Return what withdrawing a version changes. `platforms`: active hosts by their platforms."""
    rest = {number: one for number, one in catalogue.versions.items() if one is not version}
    others = current_versions(rest).get(version.app_id, ())
    hosts = hosts_of(catalogue.current.get(version.app_id, ()), platforms)
    fails = {one.app_version_id: f"fails on {one.failing} of {one.hosts} hosts" for one in failing}
    told = [(one, fails.get(one.app_version_id, "")) for one in others]
    sure = [one for one in others if not _asks_more(one.plan_class, version.plan_class)]
    lost, at_most = (max(0, hosts - hosts_of(kept, platforms)) for kept in (others, sure))
    limited = dict.fromkeys(one.plan_class.name for one in others if one not in sure) if at_most > lost else ()
    return Withdrawal(hosts, lost, told, at_most, list(limited))


def _asks_more(other: PlanClass, than: PlanClass) -> bool:
    """Return whether a host that meets one plan class may fail to meet the other."""
    asks, known = ({name: getattr(one, name) for name in _ASKED} for one in (other, than))
    return any(
        asks[name] != known[name] if isinstance(asks[name], str) else asks[name] > (known[name] or 0)
        for name in _ASKED
        if asks[name]
    )


ACTION, OF_APP = "set_app_version", "set_app"  # in the audit trail
MOST_ACTS = 200  # latest changes of versions, or of an app, that are read
DONE = {VersionState.DEPRECATED: "deprecated"}  # the other states are withdrawals


@dataclass(frozen=True, slots=True)
class LostVersion:
    """An app whose jobs are not sent, because it is `deprecated` or has no version for new work.

    `version` is the last version, None if it never had one. `act` is the entry of the audit trail about that version,
    or about a deprecated app; None if there is none.
    """

    app: str
    version: AppVersion | None
    act: Act | None = None
    deprecated: bool = False

    @property
    def since_at(self) -> Instant | None:
        return None if self.act is None else self.act.acted_at

    @property
    def link(self) -> str:
        """Return the page of the console that offers the version or the app again, below the console's root."""
        if self.deprecated:
            return f"apps/{self.app}#h-settings"
        return f"apps/{self.app}" + (f"/versions/{self.version.app_version_id}" if self.version else "")

    @property
    def title(self) -> str:
        return f"{self.app} {self.version.title}" if self.version and not self.deprecated else self.app

    @property
    def remedy(self) -> str:
        """Return what lets hosts get jobs of the app again."""
        if self.deprecated:
            return f"clear Deprecated in the settings of {self.app}"
        again = f"offer {self.title} again, or " if self.version else ""
        return again + f"add a version of {self.app}"

    @property
    def words(self) -> str:
        """Return what was deprecated or withdrawn, by whom, when and why, as a clause."""
        if self.deprecated:
            return f"app {self.app} was deprecated" + (f" by {self.act.who} {self._at}" if self.act else "")
        start = f"no version of {self.app} gets jobs"
        if self.version is None:
            return f"{self.app} has no version yet"
        if self.act is None:
            return f"{start}: {self.version.title} is {DONE.get(self.version.state, 'withdrawn')}"
        why = self.act.detail.get("why")
        done = DONE.get(self.version.state, "withdrew")
        return f"{start}: {self.act.who} {done} {self.version.title} {self._at}{f' ({why})' if why else ''}"

    @property
    def _at(self) -> str:
        assert self.act is not None
        return f"at {utc(self.act.acted_at):%Y-%m-%d %H:%M} UTC"


async def lost_versions(
    trail: PostgresAccess, catalogue: Catalogue, app_ids: Iterable[AppId]
) -> Mapping[AppId, LostVersion]:
    """Return those of the apps whose jobs are not sent."""
    lost = [catalogue.apps[one] for one in app_ids if one in catalogue.apps and not catalogue.is_sent(one)]
    if not lost:
        return {}
    acts = (await trail_page(trail, ActChoice(what=ACTION), before=None, limit=MOST_ACTS)).acts
    return {
        one.app_id: await _deprecated(trail, one.name) if one.deprecated else _lost(one.app_id, catalogue, acts)
        for one in lost
    }


async def _deprecated(trail: PostgresAccess, app: str) -> LostVersion:
    acts = (await trail_page(trail, ActChoice(what=OF_APP, subject=f"app {app}"), before=None, limit=MOST_ACTS)).acts
    act = next((one for one in acts if one.detail.get("deprecated")), None)
    return LostVersion(app, None, act, deprecated=True)


def _lost(app_id: AppId, catalogue: Catalogue, acts: Iterable[Act]) -> LostVersion:
    name = catalogue.apps[app_id].name
    own = {f"app version {number}": one for number, one in catalogue.versions.items() if one.app_id == app_id}
    act = next((one for one in acts if one.target in own and one.detail.get("state") != VersionState.OFFERED), None)
    if act is not None:
        return LostVersion(name, own[act.target], act)
    return LostVersion(name, max(own.values(), key=lambda one: one.app_version_id, default=None))
