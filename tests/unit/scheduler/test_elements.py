"""The reply elements of jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.apps import NVIDIA, AppFile, PlanClass
from domain.catalogue import Catalogue
from domain.dispatch import SentJob
from domain.jobs import Input, Output
from domain.units import AppId, AppVersionId, FlopPerSecond, InstanceId, Instant, JobId, Seconds
from scheduler.elements import MOST_KNOWN_INPUTS, Elements, JobToSend, ReplyWork, lost_job
from tests.builders import NOW, a_held, a_host, a_job_class, a_plan_class, an_app, an_app_version
from tests.unit.scheduler.project import Addresses
from wire.messages import FileRef

MD5 = "4798a3d154d777dddf844c30285cb747"
COMMON = Input("table_v1", "table", 1000, MD5, sticky=True)
OWN = Input("pi_1_1_in", "in", 17, MD5)


def a_job(number: int = 1, **changes: Any) -> JobToSend:
    job = JobToSend(
        a_held(instance_id=InstanceId(number), job_id=JobId(number), due_at=Instant(NOW + 86400.75)),
        an_app_version(),
        a_job_class(inputs=(COMMON,)),
        FlopPerSecond(2.5e9),
        SentJob(InstanceId(number), "--digits 100", None),
    )
    return replace(job, **changes)


def described(*jobs: JobToSend) -> ReplyWork:
    return Elements(Addresses()).work_of(jobs, Catalogue(apps={AppId(1): an_app()}))


def test_two_jobs_share_their_app_version_and_files() -> None:
    work = described(a_job(1), a_job(2))
    assert len(work.apps) == len(work.app_versions) == 1
    assert [file.name for file in work.downloads] == ["pi_1.00_linux", "table_v1"]
    assert [result.name for result in work.results] == ["pi_1_1_1", "pi_1_2_2"]
    assert [workunit.name for workunit in work.workunits] == ["pi_1_1", "pi_1_2"]
    assert [upload.name for upload in work.uploads] == ["pi_1_1_1_r0", "pi_1_2_2_r0"]


def test_version_is_described_once_per_number_of_cpus() -> None:
    """A client keeps one number of CPUs for each version and plan class."""
    wide, wider = a_job_class(ncpus=8.0), a_job_class(ncpus=16.0)
    work = described(a_job(1), a_job(2, job_class=wide), a_job(3, job_class=wide), a_job(4, job_class=wider))

    assert {one.plan_class: one.avg_ncpus for one in work.app_versions} == {"": 1.0, "+8cpus": 8.0, "+16cpus": 16.0}
    assert [result.plan_class for result in work.results] == ["", "+8cpus", "+8cpus", "+16cpus"]
    assert len({one.file_refs for one in work.app_versions}) == 1
    assert [file.name for file in work.downloads] == ["pi_1.00_linux", "table_v1"]


def test_plan_class_of_more_cpus_or_a_gpu_keeps_its_name() -> None:
    for plan_class in (
        a_plan_class(name="mt", ncpus=8.0),
        a_plan_class(name="cuda", gpu_type=NVIDIA, ncpus=0.1),
        a_plan_class(name="half", ncpus=0.5),
    ):
        for ncpus in (1.0, 8.0):
            job = a_job(version=an_app_version(plan_class=plan_class), job_class=a_job_class(ncpus=ncpus))
            work = described(job)
            if plan_class.name != "half" or ncpus == 1.0:
                assert work.app_versions[0].avg_ncpus == plan_class.ncpus
                assert work.results[0].plan_class == plan_class.name
            else:
                assert (work.app_versions[0].avg_ncpus, work.results[0].plan_class) == (8.0, "half+8cpus")


def test_everything_a_reply_refers_to_is_in_it() -> None:
    work = described(a_job(1, sent=SentJob(InstanceId(1), "", (OWN,))), a_job(2))
    files = {file.name for file in work.downloads} | {file.name for file in work.uploads}
    refs = [ref for version in work.app_versions for ref in version.file_refs]
    refs += [ref for workunit in work.workunits for ref in workunit.file_refs]
    refs += [ref for result in work.results for ref in result.file_refs]
    assert {ref.file_name for ref in refs} == files
    assert {result.wu_name for result in work.results} == {workunit.name for workunit in work.workunits}
    assert {(v.app_name, v.version_num, v.platform, v.plan_class) for v in work.app_versions} == {
        ("pi", result.version_num, result.platform, result.plan_class) for result in work.results
    }


def test_app_files_are_signed_and_inputs_carry_their_md5() -> None:
    helper = AppFile("pi_data", 5, "0" * 32, "sig\n.\n", open_name="data", copy_file=True, executable=False)
    main = AppFile("pi_main", 9, "1" * 32, "sig\n.\n", main_program=True)
    work = described(a_job(version=an_app_version(files=(main, helper))))
    program, data, table = work.downloads
    assert (program.signature, program.md5, program.executable) == ("sig\n.\n", "", True)
    assert (data.executable, table.md5, table.signature, table.sticky) == (False, MD5, "", True)
    assert work.app_versions[0].file_refs == (
        FileRef("pi_main", main_program=True),
        FileRef("pi_data", "data", copy_file=True),
    )


def test_inputs_and_outputs_are_copied_own_inputs_come_last() -> None:
    outputs = (Output("out", 10), Output("log", 20, optional=True))
    job = a_job(sent=SentJob(InstanceId(1), "", (OWN,)), job_class=a_job_class(inputs=(COMMON,), outputs=outputs))
    work = described(job)
    assert work.workunits[0].file_refs == (
        FileRef("table_v1", "table", copy_file=True),
        FileRef("pi_1_1_in", "in", copy_file=True),
    )
    assert work.results[0].file_refs == (
        FileRef("pi_1_1_1_r0", "out", copy_file=True),
        FileRef("pi_1_1_1_r1", "log", copy_file=True, optional=True),
    )
    assert [(upload.max_bytes, upload.token) for upload in work.uploads] == [
        (10, "token of pi_1_1_1_r0 10"),
        (20, "token of pi_1_1_1_r1 20"),
    ]


def test_folder_of_an_output_is_made_by_a_link_in_it() -> None:
    """The stock client creates folders only for inputs."""
    outputs = tuple(Output(name, 10) for name in ("out/a.nc", "out/b.nc", "out/deep/c.nc", "log"))
    work = described(a_job(job_class=a_job_class(outputs=outputs)))

    program = work.app_versions[0].file_refs[0].file_name
    links = [FileRef(program, f"{folder}/.folder") for folder in ("out", "out/deep")]
    assert list(work.workunits[0].file_refs) == links


def test_the_due_date_is_rounded_down_and_sizes_are_the_classs() -> None:
    work = described(a_job())
    assert work.results[0].report_deadline == NOW + 86400.0
    workunit = work.workunits[0]
    assert (workunit.fpops_est, workunit.fpops_bound, workunit.memory_bytes, workunit.command_line) == (
        3.6e12,
        3.6e13,
        1e8,
        "--digits 100",
    )
    assert work.app_versions[0].flop_per_s == 2.5e9


def test_a_gpu_version_names_its_device() -> None:
    plan_class = a_plan_class(name="cuda", gpu_type=NVIDIA, gpu_count=0.5, ncpus=0.1)
    version = described(a_job(version=an_app_version(plan_class=plan_class))).app_versions[0]
    assert (version.coproc_type, version.coproc_count, version.avg_ncpus) == ("NVIDIA", 0.5, 0.1)
    assert described(a_job()).app_versions[0].coproc_type == ""


def test_two_versions_of_an_app_are_both_described() -> None:
    other = an_app_version(app_version_id=AppVersionId(2), version_num=101)
    assert [version.version_num for version in described(a_job(1), a_job(2, version=other)).app_versions] == [100, 101]


def test_lost_job_is_sent_with_the_speed_of_its_runtime() -> None:
    host = a_host(on_fraction=0.5)
    held = a_held(est_runtime_s=Seconds(7200.0))
    job = lost_job(held, an_app_version(), a_job_class(), host, SentJob(InstanceId(1), "", None))
    assert job.flop_per_s == 1e9  # 3.6e12 flop in 7200 s, with the host off half of the time
    assert job.instance.due_at == held.due_at


def test_changed_version_or_app_is_rendered_again() -> None:
    elements = Elements(Addresses())
    before, after = an_app_version(), an_app_version(files=(AppFile("pi_fixed", 9, "1" * 32, "sig\n.\n"),))
    elements.work_of([a_job(version=before)], Catalogue(apps={AppId(1): an_app()}))
    renamed = Catalogue(apps={AppId(1): an_app(user_friendly_name="Digits")})
    work = elements.work_of([a_job(version=after)], renamed)
    assert [file.name for file in work.downloads] == ["pi_fixed", "table_v1"]
    assert [app.user_friendly_name for app in work.apps] == ["Digits"]


def test_more_input_lists_than_the_cache_holds_are_rendered() -> None:
    elements, catalogue = Elements(Addresses()), Catalogue(apps={AppId(1): an_app()})
    for number in range(MOST_KNOWN_INPUTS + 2):
        job_class = a_job_class(inputs=(replace(COMMON, name=f"table_{number}"),))
        work = elements.work_of([a_job(job_class=job_class)], catalogue)
        assert work.workunits[0].file_refs[0].file_name == work.downloads[-1].name == f"table_{number}"


def test_arguments_of_a_plan_class_name_the_cpus_of_the_job() -> None:
    plan = PlanClass("mt", ncpus=4.0, arguments="--nthreads {ncpus}")
    jobs = [a_job(version=an_app_version(plan_class=plan), job_class=a_job_class(ncpus=n)) for n in (1.0, 8.0)]

    assert [described(job).app_versions[0].arguments for job in jobs] == ["--nthreads 4", "--nthreads 8"]
