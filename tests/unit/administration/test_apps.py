"""App versions are signed and stored under names derived from their content."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from administration.apps import MoreFile, VersionDraft, add_app_version, app_file_name, withdrawal_of
from administration.names import checked_shares
from administration.project import Project, create_project
from administration.signing import with_project_key
from domain.apps import AppVersion, PlanClass, ProcessorType
from domain.attention import FailingVersion, by_app, worst_first
from domain.catalogue import Catalogue, current_versions
from domain.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from domain.units import AppVersionId, BatchId
from tests.builders import LINUX, an_app, an_app_version
from tests.facts import states
from tests.memory import MemoryStore
from tests.stores import as_postgres
from tests.unit.administration.clocks import StillClock
from transfer import keys
from wire.signing import parse_public_key_text, verify


def a_version(folder: Path) -> VersionDraft:
    main = folder / "main.sh"
    main.write_text("#!/bin/sh\ntouch boinc_finish_called\n")
    return VersionDraft("pi", LINUX, 100, main)


def test_file_name_depends_on_app_and_content() -> None:
    names = {app_file_name(app, Path("main.py"), digit * 32) for app in ("pi", "e") for digit in "01"}

    assert len(names) == 4 and f"pi_main_{'0' * 32}.py" in names


@pytest.mark.parametrize("name", ["a b.dat", "ключ.dat", "../../etc.dat", "a.very-long-ending", "$(x).s;h"])
def test_file_name_is_safe_for_paths_and_shells(name: str) -> None:
    made = app_file_name("pi", Path(name), "0" * 32)

    assert set(made) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
    assert "/" not in made


@pytest.mark.parametrize("shares", [0.0, 0.5, 1e9])
def test_valid_shares_are_accepted(shares: float) -> None:
    assert checked_shares(shares) == shares


@pytest.mark.parametrize("shares", [-1.0, float("nan"), float("inf")])
def test_invalid_shares_are_refused(shares: float) -> None:
    with states(InvalidInputError, "shares:", "0 to 1000000000"):
        checked_shares(shares)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = create_project(tmp_path_factory.mktemp("project"), None)
    keys.create_keys(made.keys_dir)
    return made


async def a_store() -> MemoryStore:
    store = MemoryStore()
    await store.applications.add_app(an_app())
    return store


async def test_version_is_signed_stored_and_current(project: Project, tmp_path: Path) -> None:
    store, new = await a_store(), a_version(tmp_path)
    (tmp_path / "table.csv").write_text("1,2\n")
    new = replace(
        new, more_files=(MoreFile(tmp_path / "table.csv", "t.csv"), MoreFile(tmp_path / "table.csv", "l", link=True))
    )

    version_id = await add_app_version(
        as_postgres(store).applications, project, new, clock=StillClock(), sign=with_project_key(project)
    )

    catalogue = await store.applications.load_catalogue()
    [version] = catalogue.current[catalogue.versions[version_id].app_id]
    assert (version.platform, version.version_num) == (LINUX, 100)
    main, table, link = version.files
    assert (main.main_program, main.open_name, table.main_program, table.open_name) == (True, "", False, "t.csv")
    assert (table.copy_file, link.copy_file, link.open_name, link.name) == (True, False, "l", table.name)
    public_key = parse_public_key_text(keys.CodeSigner(keys.load_keys(project.keys_dir)).public_key_text())
    for file, source in ((main, new.main_program), (table, tmp_path / "table.csv")):
        assert verify(public_key, source.read_bytes(), file.signature)
        assert file.md5 == hashlib.md5(source.read_bytes(), usedforsecurity=False).hexdigest()
        assert [path.read_bytes() for path in project.download_dir.rglob(file.name)] == [source.read_bytes()]


async def test_unchanged_file_of_a_new_version_keeps_its_name(project: Project, tmp_path: Path) -> None:
    store, new = await a_store(), a_version(tmp_path)
    table = tmp_path / "table.csv"
    table.write_text("1,2\n")
    names = []
    for number in (100, 101):
        new.main_program.write_text(f"#!/bin/sh\necho {number}\n")
        draft = replace(new, version_num=number, more_files=(MoreFile(table, "table.csv"),))
        applications, sign = as_postgres(store).applications, with_project_key(project)
        version_id = await add_app_version(applications, project, draft, clock=StillClock(), sign=sign)
        versions = (await store.applications.load_catalogue()).versions
        names.append([file.name for file in versions[version_id].files])

    assert names[0][1] == names[1][1] and names[0][0] != names[1][0]


async def test_two_files_of_one_name_are_refused(project: Project, tmp_path: Path) -> None:
    store, new = await a_store(), a_version(tmp_path)
    twice = replace(new, more_files=(MoreFile(Path("a/x"), "x"), MoreFile(Path("b/x"), "x", link=True)))

    with states(InvalidInputError, "file:", "NAME=PATH", "'x'"):
        await add_app_version(
            as_postgres(store).applications, project, twice, clock=StillClock(), sign=with_project_key(project)
        )


@pytest.mark.parametrize("text", ["=a", "a/b=c", "..=c", ".=x"])
def test_file_option_without_a_name_is_refused(text: str) -> None:
    with states(InvalidInputError, "file:", "NAME=PATH"):
        MoreFile.parse(text)


async def test_duplicate_version_is_refused(project: Project, tmp_path: Path) -> None:
    store, new = await a_store(), a_version(tmp_path)
    await add_app_version(
        as_postgres(store).applications, project, new, clock=StillClock(), sign=with_project_key(project)
    )

    with pytest.raises(AlreadyExistsError):
        await add_app_version(
            as_postgres(store).applications, project, new, clock=StillClock(), sign=with_project_key(project)
        )


async def test_invalid_version_is_refused_by_field(project: Project, tmp_path: Path) -> None:
    store, new = await a_store(), a_version(tmp_path)

    with pytest.raises(NotFoundError, match=r"^no app fft$"):
        await add_app_version(
            as_postgres(store).applications,
            project,
            replace(new, app="fft"),
            clock=StillClock(),
            sign=with_project_key(project),
        )
    with states(NotFoundError, "no plan class 'mt'", "`muster app plan-class set`"):
        await add_app_version(
            as_postgres(store).applications,
            project,
            replace(new, plan_class="mt"),
            clock=StillClock(),
            sign=with_project_key(project),
        )
    with states(InvalidInputError, "main:", "a file", "'/no/such/file'"):
        await add_app_version(
            as_postgres(store).applications,
            project,
            replace(new, main_program=Path("/no/such/file")),
            clock=StillClock(),
            sign=with_project_key(project),
        )
    with states(InvalidInputError, "platform:", "such as x86_64-pc-linux-gnu"):
        await add_app_version(
            as_postgres(store).applications,
            project,
            replace(new, platform="../x"),
            clock=StillClock(),
            sign=with_project_key(project),
        )
    assert (await store.applications.load_catalogue()).versions == {}


WINDOWS, MAC = "windows_x86_64", "arm64-apple-darwin"
PLATFORMS = {(LINUX,): 7, (WINDOWS,): 5, (WINDOWS, LINUX): 2, (MAC,): 9}


def a_failing_version(number: int, failing: int, hosts: int, *, platform: str = LINUX) -> FailingVersion:
    failures = 10 * failing
    return FailingVersion(AppVersionId(number), "pi", platform, 100, "", failures, hosts, failing, BatchId(1), failures)


def test_withdrawal_counts_hosts_without_another_version() -> None:
    versions = [an_app_version(), an_app_version(app_version_id=AppVersionId(2), platform=WINDOWS)]
    known = {one.app_version_id: one for one in versions}
    catalogue = Catalogue(versions=known, current=current_versions(known))

    found = withdrawal_of(versions[0], catalogue, PLATFORMS, [a_failing_version(2, 5, 7, platform=WINDOWS)])

    assert (found.hosts, found.lost) == (14, 7)
    [(other, fails)] = found.others
    assert other is versions[1] and "5 of 7" in fails
    only = withdrawal_of(versions[0], replace(catalogue, versions={versions[0].app_version_id: versions[0]}), {}, [])
    assert (only.hosts, only.lost, only.others) == (0, 0, [])


def test_a_lower_version_replaces_a_withdrawn_one() -> None:
    low, high = an_app_version(), an_app_version(app_version_id=AppVersionId(2), version_num=200)
    known = {one.app_version_id: one for one in (low, high)}

    found = withdrawal_of(high, Catalogue(versions=known, current=current_versions(known)), PLATFORMS, [])

    assert (found.lost, found.others) == (0, [(low, "")])


def test_a_plan_class_that_asks_more_keeps_the_app_on_some_hosts() -> None:
    cuda = PlanClass("cuda", gpu_type=ProcessorType("NVIDIA"), min_gpu_ram_bytes=1e9)
    small = PlanClass("small", gpu_type=ProcessorType("NVIDIA"))
    plain, gpu, less = (
        an_app_version(app_version_id=AppVersionId(number), plan_class=one)
        for number, one in enumerate((PlanClass(""), cuda, small), start=1)
    )

    def without(version: AppVersion, *rest: AppVersion) -> tuple[int, int, Sequence[str]]:
        known = {one.app_version_id: one for one in (version, *rest)}
        found = withdrawal_of(version, Catalogue(versions=known, current=current_versions(known)), PLATFORMS, [])
        return found.lost, found.at_most, found.limited

    assert without(plain, gpu) == (0, 9, ["cuda"])
    assert (
        without(gpu, less)
        == without(gpu, plain)
        == without(plain, gpu, replace(plain, app_version_id=AppVersionId(4), version_num=1))
        == (0, 0, [])
    )
    assert without(less, gpu) == (0, 9, ["cuda"])


def test_failing_versions_are_told_worst_first() -> None:
    many, worst, sound = a_failing_version(1, 34, 87), a_failing_version(2, 13, 16), a_failing_version(3, 1, 90)

    found = by_app(worst_first([many, worst, sound]))

    assert [one.app_version_id for one in found["pi"].versions] == [2, 1]
    assert found["pi"].worst is worst
    words = found["pi"].words
    assert words.startswith("2 versions") and words.index("13 of 16") < words.index("34 of 87") and "90" not in words
