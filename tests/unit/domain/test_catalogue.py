"""The app version used for new work."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.apps import CPU, NVIDIA, AppVersion, PlanClass, VersionState
from domain.catalogue import Catalogue, current_versions
from domain.units import AppId, AppVersionId
from tests.builders import LINUX, an_app_version

WINDOWS = "windows_x86_64"
GPU = PlanClass("cuda", gpu_type=NVIDIA)


def versions_of(*versions: AppVersion) -> dict[AppVersionId, AppVersion]:
    numbered = enumerate(versions, start=1)
    return {AppVersionId(number): a_version for number, a_version in numbered}


def test_highest_version_of_a_plan_class_is_current() -> None:
    versions = versions_of(
        an_app_version(version_num=102), an_app_version(version_num=103), an_app_version(version_num=101)
    )

    assert current_versions(versions) == {AppId(1): (versions[AppVersionId(2)],)}


def test_each_platform_and_plan_class_keeps_its_own() -> None:
    versions = versions_of(
        an_app_version(version_num=103),
        an_app_version(platform=WINDOWS, version_num=101),
        an_app_version(plan_class=GPU, version_num=102),
    )

    kept = {(v.platform, v.plan_class.name, v.version_num) for v in current_versions(versions)[AppId(1)]}

    assert kept == {(LINUX, "", 103), (WINDOWS, "", 101), (LINUX, "cuda", 102)}


def test_a_deprecated_version_gives_way_to_the_one_before_it() -> None:
    versions = versions_of(
        an_app_version(version_num=100), an_app_version(version_num=101, state=VersionState.DEPRECATED)
    )

    assert [version.version_num for version in current_versions(versions)[AppId(1)]] == [100]


def test_an_app_with_deprecated_versions_only_has_no_entry() -> None:
    assert current_versions(versions_of(an_app_version(state=VersionState.WITHDRAWN))) == {}


VERSIONS = st.lists(
    st.builds(
        lambda app, platform, number, deprecated: an_app_version(
            app_id=AppId(app),
            platform=platform,
            version_num=number,
            state=VersionState.DEPRECATED if deprecated else VersionState.OFFERED,
        ),
        st.integers(1, 3),
        st.sampled_from((LINUX, WINDOWS)),
        st.integers(100, 104),
        st.booleans(),
    ),
    max_size=12,
)


@given(VERSIONS)
def test_every_version_in_use_is_current_or_superseded(versions: list[AppVersion]) -> None:
    current = current_versions(versions_of(*versions))

    for version in versions:
        if version.state is not VersionState.OFFERED:
            continue
        rivals = [v for v in current[version.app_id] if v.platform == version.platform]
        assert len(rivals) == 1
        assert rivals[0].version_num >= version.version_num


def test_an_app_has_the_processor_types_of_its_current_versions() -> None:
    versions = versions_of(an_app_version(), an_app_version(plan_class=GPU))
    catalogue = Catalogue(versions=versions, current=current_versions(versions))

    assert catalogue.processor_types(AppId(1)) == {CPU, NVIDIA}
    assert catalogue.processor_types(AppId(2)) == frozenset()


def test_versions_of_all_cpus_use_those_of_the_host() -> None:
    wide = an_app_version(plan_class=PlanClass("mt", ncpus=2.0, all_cpus=True))
    plain = an_app_version(app_version_id=AppVersionId(2))
    versions = {one.app_version_id: one for one in (wide, plain)}
    catalogue = Catalogue(versions=versions, current=current_versions(versions))

    def cpus(ncpus: int) -> list[float]:
        found = catalogue.on_host(ncpus)
        assert {one.app_version_id: one for one in found.current[wide.app_id]} == found.versions
        return [found.versions[one.app_version_id].plan_class.ncpus for one in (wide, plain)]

    assert [cpus(number) for number in (1, 16)] == [[2.0, 1.0], [16.0, 1.0]]
    assert Catalogue(versions={plain.app_version_id: plain}).on_host(16).versions == {plain.app_version_id: plain}
