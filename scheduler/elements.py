"""The elements that describe jobs to a client: files, app versions, workunits, each once. Pure. PROTOCOL 5.

Everything that an element refers to is in the same reply: clients forget, and a part they know already
costs them nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from domain.apps import App, AppVersion
from domain.catalogue import Catalogue
from domain.dispatch import SentJob
from domain.hosts import Host
from domain.jobs import Held, Input, JobClass, instance_name, job_name, output_file_name
from domain.units import BatchId, FlopPerSecond, InstanceId, Instant, JobId
from scheduler.choice import Chosen
from scheduler.ports import Uploads
from wire.messages import (
    AppElement,
    AppVersionElement,
    DownloadElement,
    FileRef,
    ResultElement,
    UploadElement,
    WorkunitElement,
)


@dataclass(frozen=True, slots=True)
class JobToSend:
    """One job of a reply. `flop_per_s` is the speed the client is to expect."""

    instance_id: InstanceId
    job_id: JobId
    batch_id: BatchId
    due_at: Instant
    version: AppVersion
    job_class: JobClass
    flop_per_s: FlopPerSecond
    sent: SentJob


@dataclass(frozen=True, slots=True)
class Work:
    """The elements of the jobs in a reply, in the order clients need them."""

    apps: tuple[AppElement, ...] = ()
    downloads: tuple[DownloadElement, ...] = ()
    uploads: tuple[UploadElement, ...] = ()
    app_versions: tuple[AppVersionElement, ...] = ()
    workunits: tuple[WorkunitElement, ...] = ()
    results: tuple[ResultElement, ...] = ()


def chosen_job(chosen: Chosen, sent: SentJob) -> JobToSend:
    """A job that was just committed."""
    given = chosen.assignment
    return JobToSend(
        given.instance_id,
        given.job_id,
        given.batch_id,
        given.due_at,
        chosen.version,
        chosen.job_class,
        chosen.flop_per_s,
        sent,
    )


def lost_job(held: Held, version: AppVersion, job_class: JobClass, host: Host, sent: SentJob) -> JobToSend:
    """A lost job, with the due date and the speed it was first sent with.

    The speed is what R stood for: fpops_est / R / availability.
    """
    gpu = version.plan_class.gpu_type is not None
    availability = host.gpu_availability_fraction if gpu else host.cpu_availability_fraction
    speed = job_class.fpops_est_flop / max(1e-3, held.est_runtime_s) / max(1e-4, availability)
    return JobToSend(
        held.instance_id,
        held.job_id,
        held.batch_id,
        held.due_at,
        version,
        job_class,
        FlopPerSecond(speed),
        sent,
    )


def work_of(jobs: Iterable[JobToSend], catalogue: Catalogue, uploads: Uploads) -> Work:
    """The elements of `jobs`: each app, app version, file and workunit once."""
    apps: dict[str, AppElement] = {}
    downloads: dict[str, DownloadElement] = {}
    outputs: dict[str, UploadElement] = {}
    versions: dict[int, AppVersionElement] = {}
    workunits: dict[str, WorkunitElement] = {}
    results: dict[str, ResultElement] = {}
    for job in jobs:
        app = catalogue.apps[job.version.app_id]
        apps.setdefault(app.name, AppElement(app.name, app.user_friendly_name or app.name))
        if job.version.app_version_id not in versions:
            versions[job.version.app_version_id] = _app_version(job, app)
            for file in _app_files(job.version, uploads):
                downloads.setdefault(file.name, file)
        inputs = (*job.job_class.inputs, *(job.sent.inputs or ()))
        for entry in inputs:
            downloads.setdefault(entry.name, _input_file(entry, uploads))
        workunit = _workunit(job, app, inputs)
        workunits.setdefault(workunit.name, workunit)
        result = _result(job, app, workunit.name)
        results[result.name] = result
        for file_ref, output in zip(result.file_refs, job.job_class.outputs, strict=True):
            token = uploads.token(file_ref.file_name, output.max_bytes)
            element = UploadElement(file_ref.file_name, uploads.upload_url(), output.max_bytes, token)
            outputs[element.name] = element
    return Work(
        tuple(apps.values()),
        tuple(downloads.values()),
        tuple(outputs.values()),
        tuple(versions.values()),
        tuple(workunits.values()),
        tuple(results.values()),
    )


def _app_version(job: JobToSend, app: App) -> AppVersionElement:
    version, plan_class = job.version, job.version.plan_class
    return AppVersionElement(
        app.name,
        version.version_num,
        version.platform,
        plan_class.name,
        avg_ncpus=plan_class.ncpus,
        flop_per_s=job.flop_per_s,
        api_version=version.api_version,
        coproc_type=plan_class.gpu_type or "",
        coproc_count=plan_class.gpu_count if plan_class.gpu_type is not None else 0.0,
        file_refs=tuple(
            FileRef(file.name, file.open_name, main_program=file.main_program, copy_file=file.copy_file)
            for file in version.files
        ),
    )


def _app_files(version: AppVersion, uploads: Uploads) -> Iterable[DownloadElement]:
    for file in version.files:
        url = uploads.download_url(file.name)
        yield DownloadElement(file.name, (url,), file.nbytes, signature=file.signature, executable=file.executable)


def _input_file(entry: Input, uploads: Uploads) -> DownloadElement:
    url = uploads.download_url(entry.name)
    return DownloadElement(entry.name, (url,), entry.nbytes, md5=entry.md5, sticky=entry.sticky)


def _workunit(job: JobToSend, app: App, inputs: Sequence[Input]) -> WorkunitElement:
    job_class = job.job_class
    return WorkunitElement(
        job_name(app.name, job.batch_id, job.job_id),
        app.name,
        fpops_est=job_class.fpops_est_flop,
        fpops_bound=job_class.fpops_bound_flop,
        memory_bytes=job_class.memory_bytes,
        disk_bytes=job_class.disk_bytes,
        command_line=job.sent.command_line,
        file_refs=tuple(FileRef(entry.name, entry.open_name, copy_file=True) for entry in inputs),
    )


def _result(job: JobToSend, app: App, workunit_name: str) -> ResultElement:
    name = instance_name(app.name, job.batch_id, job.job_id, job.instance_id)
    return ResultElement(
        name,
        workunit_name,
        Instant(float(int(job.due_at))),
        job.version.platform,
        job.version.version_num,
        job.version.plan_class.name,
        file_refs=tuple(
            FileRef(output_file_name(name, position), output.name, copy_file=True, optional=output.optional)
            for position, output in enumerate(job.job_class.outputs)
        ),
    )
