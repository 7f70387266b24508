"""Builds the reply elements that describe jobs: files, app versions and workunits, each once. Pure.
docs/protocol.md#reply.

A reply contains everything its elements refer to: clients forget, and elements that they already have cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from domain.apps import App, AppFile, AppVersion, PlanClass, plan_for
from domain.catalogue import Catalogue
from domain.dispatch import Assignment, SentJob
from domain.hosts import Host
from domain.jobs import Input, InstanceInProgress, JobClass, Output, instance_name, job_name, output_file_name
from domain.quick import quick_dataclass
from domain.units import AppVersionId, FlopPerSecond, Instant
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

MOST_KNOWN_INPUTS = 1000  # cached file lists of job classes
FOLDER_LINK = ".folder"  # no input has this name: names have no leading dot


@quick_dataclass(frozen=True, slots=True)
class JobToSend:
    """One job in a reply. `flop_per_s` is the speed that is sent to the client; `hurry`: its result is waited for."""

    instance: Assignment | InstanceInProgress
    version: AppVersion
    job_class: JobClass
    flop_per_s: FlopPerSecond
    sent: SentJob
    hurry: bool = False

    @property
    def plan(self) -> PlanClass:
        """Return the plan class with which the job runs."""
        return plan_for(self.version.plan_class, self.job_class.ncpus)


@quick_dataclass(frozen=True, slots=True)
class ReplyWork:
    """The elements of the jobs in a reply, in the order required by clients."""

    apps: tuple[AppElement, ...] = ()
    downloads: tuple[DownloadElement, ...] = ()
    uploads: tuple[UploadElement, ...] = ()
    app_versions: tuple[AppVersionElement, ...] = ()
    workunits: tuple[WorkunitElement, ...] = ()
    results: tuple[ResultElement, ...] = ()


def lost_job(
    held: InstanceInProgress, version: AppVersion, job_class: JobClass, host: Host, sent: SentJob
) -> JobToSend:
    """Return a lost job as it was sent, with the same due date and speed. Its result is late, and reported immediately.

    The speed is derived from R: fpops_est / R / availability.
    """
    gpu = version.plan_class.gpu_type is not None
    availability = host.gpu_availability_fraction if gpu else host.cpu_availability_fraction
    speed = job_class.fpops_est_flop / max(1e-3, held.est_runtime_s) / max(1e-4, availability)
    return JobToSend(held, version, job_class, FlopPerSecond(speed), sent, hurry=True)


class _OfVersion(NamedTuple):
    """The part of an app version's description that is the same in every reply."""

    version: AppVersion
    app: App
    element: AppElement
    file_refs: tuple[FileRef, ...]
    downloads: tuple[DownloadElement, ...]


class _OfInputs(NamedTuple):
    downloads: tuple[DownloadElement, ...]
    file_refs: tuple[FileRef, ...]


NO_INPUTS = _OfInputs((), ())


class Elements:
    """Builds reply elements and caches the parts that many replies share."""

    def __init__(self, uploads: Uploads) -> None:
        self._uploads = uploads
        self._versions: dict[AppVersionId, _OfVersion] = {}
        self._inputs: dict[tuple[Input, ...], _OfInputs] = {}  # of job classes

    def work_of(self, jobs: Iterable[JobToSend], catalogue: Catalogue) -> ReplyWork:
        """Return the elements of `jobs`, with each app, app version, file and workunit only once."""
        apps: dict[str, AppElement] = {}
        downloads: dict[str, DownloadElement] = {}
        outputs: dict[str, UploadElement] = {}
        versions: dict[tuple[AppVersionId, str], AppVersionElement] = {}  # by version and plan class
        workunits: dict[str, WorkunitElement] = {}
        results: dict[str, ResultElement] = {}
        for job in jobs:
            app = catalogue.apps[job.version.app_id]
            key = job.version.app_version_id, job.plan.name
            if key not in versions:
                known = self._of_version(job.version, app)
                apps.setdefault(app.name, known.element)
                versions[key] = _app_version(job, app, known.file_refs)
                for file in known.downloads:
                    downloads.setdefault(file.name, file)
            inputs = self._of_inputs(job)
            for file in inputs.downloads:
                downloads.setdefault(file.name, file)
            workunit_name = job_name(app.name, job.instance.batch_id, job.instance.job_id)
            if workunit_name not in workunits:
                refs = inputs.file_refs + _links_in_folders(job)
                workunits[workunit_name] = _workunit(job, app, workunit_name, refs)
            result = _result(job, app, workunit_name)
            results[result.name] = result
            for file_ref, output in zip(result.file_refs, job.job_class.outputs, strict=True):
                outputs[file_ref.file_name] = self._upload(file_ref.file_name, output)
        return ReplyWork(
            tuple(apps.values()),
            tuple(downloads.values()),
            tuple(outputs.values()),
            tuple(versions.values()),
            tuple(workunits.values()),
            tuple(results.values()),
        )

    def _of_version(self, version: AppVersion, app: App) -> _OfVersion:
        found = self._versions.get(version.app_version_id)
        if found is None or found.version is not version or found.app is not app:
            refs = [
                FileRef(f.name, f.open_name, main_program=f.main_program, copy_file=f.copy_file) for f in version.files
            ]
            found = _OfVersion(
                version,
                app,
                AppElement(app.name, app.user_friendly_name or app.name),
                tuple(refs),
                tuple(self._app_file(file) for file in version.files),
            )
            self._versions[version.app_version_id] = found
        return found

    def _of_inputs(self, job: JobToSend) -> _OfInputs:
        """Return a job's input files: first those of its class, then its own."""
        own = job.sent.inputs
        if own:
            return self._described((*job.job_class.inputs, *own))
        inputs = job.job_class.inputs
        if not inputs:
            return NO_INPUTS
        found = self._inputs.get(inputs)
        if found is None:
            if len(self._inputs) >= MOST_KNOWN_INPUTS:
                self._inputs.clear()
            found = self._inputs[inputs] = self._described(inputs)
        return found

    def _described(self, inputs: tuple[Input, ...]) -> _OfInputs:
        return _OfInputs(
            tuple(self._input_file(entry) for entry in inputs),
            tuple(FileRef(entry.name, entry.open_name, copy_file=True) for entry in inputs),
        )

    def _app_file(self, file: AppFile) -> DownloadElement:
        url = self._uploads.download_url(file.name)
        return DownloadElement(file.name, (url,), file.nbytes, signature=file.signature, executable=file.executable)

    def _input_file(self, entry: Input) -> DownloadElement:
        url = self._uploads.download_url(entry.name)
        return DownloadElement(entry.name, (url,), entry.nbytes, md5=entry.md5, sticky=entry.sticky)

    def _upload(self, name: str, output: Output) -> UploadElement:
        token = self._uploads.token(name, output.max_bytes)
        return UploadElement(name, self._uploads.upload_url(), output.max_bytes, token)


def _links_in_folders(job: JobToSend) -> tuple[FileRef, ...]:
    """Return a link to the program in each folder of an output: clients create folders only for inputs."""
    names = [output.name for output in job.job_class.outputs if "/" in output.name]
    folders = dict.fromkeys(name.rpartition("/")[0] for name in names)
    return tuple(FileRef(job.version.files[0].name, f"{folder}/{FOLDER_LINK}") for folder in folders)


def _app_version(job: JobToSend, app: App, file_refs: tuple[FileRef, ...]) -> AppVersionElement:
    version, plan_class = job.version, job.plan
    return AppVersionElement(
        app.name,
        version.version_num,
        version.platform,
        plan_class.name,
        avg_ncpus=plan_class.ncpus,
        flop_per_s=job.flop_per_s,
        api_version=version.api_version,
        arguments=plan_class.arguments.replace("{ncpus}", f"{max(1.0, plan_class.ncpus):.0f}"),
        coproc_type=plan_class.gpu_type or "",
        coproc_count=plan_class.gpu_count if plan_class.gpu_type is not None else 0.0,
        file_refs=file_refs,
    )


def _workunit(job: JobToSend, app: App, name: str, file_refs: tuple[FileRef, ...]) -> WorkunitElement:
    job_class = job.job_class
    return WorkunitElement(
        name,
        app.name,
        fpops_est=job_class.fpops_est_flop,
        fpops_bound=job_class.fpops_bound_flop,
        memory_bytes=job_class.memory_bytes,
        disk_bytes=job_class.disk_bytes,
        command_line=job.sent.command_line,
        file_refs=file_refs,
    )


def _result(job: JobToSend, app: App, workunit_name: str) -> ResultElement:
    given = job.instance
    name = instance_name(app.name, given.batch_id, given.job_id, given.instance_id)
    return ResultElement(
        name,
        workunit_name,
        Instant(float(int(given.due_at))),
        job.version.platform,
        job.version.version_num,
        job.plan.name,
        file_refs=tuple(
            [
                FileRef(output_file_name(name, position), output.name, copy_file=True, optional=output.optional)
                for position, output in enumerate(job.job_class.outputs)
            ]
        ),
        report_immediately=job.hurry,
    )
