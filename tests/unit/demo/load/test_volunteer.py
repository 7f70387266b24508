"""The tasks in a reply."""

from __future__ import annotations

from demo.load.volunteer import tasks_of
from domain.units import Instant, Seconds
from wire.messages import AppVersionElement, FileRef, ResultElement, SchedulerReply, UploadElement, WorkunitElement

URL = "http://127.0.0.1:8080/upload"


def a_workunit(number: int) -> WorkunitElement:
    return WorkunitElement(f"primes_1_{number}", "primes", 2e9, 2e10, 5e7, 1e7, str(number))


def a_result(number: int, *, version_num: int = 100, outputs: int = 1) -> ResultElement:
    name = f"primes_1_{number}_{number}"
    refs = tuple(FileRef(f"{name}_r{position}", open_name=f"out{position}") for position in range(outputs))
    return ResultElement(name, f"primes_1_{number}", Instant(0.0), "linux", version_num=version_num, file_refs=refs)


def a_version(version_num: int) -> AppVersionElement:
    main = FileRef(f"primes_{version_num}", main_program=True)
    return AppVersionElement(
        "primes", version_num, "linux", file_refs=(FileRef("library.so", open_name="library.so"), main)
    )


def a_reply(*results: ResultElement) -> SchedulerReply:
    names = [ref.file_name for result in results for ref in result.file_refs]
    return SchedulerReply(
        "http://127.0.0.1:8080/",
        Seconds(1.0),
        uploads=tuple(UploadElement(name, URL, 1000 + at, f"token of {name}") for at, name in enumerate(names)),
        app_versions=(a_version(100), a_version(101)),
        workunits=(a_workunit(1), a_workunit(2)),
        results=results,
    )


def test_a_reply_without_results_has_no_task() -> None:
    assert tasks_of(a_reply()) == []


def test_task_has_its_workunit_and_main_program() -> None:
    tasks = tasks_of(a_reply(a_result(2), a_result(1, version_num=101)))

    assert [(task.workunit.command_line, task.main_program) for task in tasks] == [
        ("2", "primes_100"),
        ("1", "primes_101"),
    ]


def test_a_task_knows_size_token_and_address_of_each_output() -> None:
    [task] = tasks_of(a_reply(a_result(1, outputs=2)))

    assert task.max_bytes == {"primes_1_1_1_r0": 1000, "primes_1_1_1_r1": 1001}
    assert task.tokens == {name: f"token of {name}" for name in task.max_bytes}
    assert task.upload_url == URL


def test_a_task_without_outputs_uploads_nowhere() -> None:
    [task] = tasks_of(a_reply(a_result(1, outputs=0)))

    assert (task.upload_url, task.max_bytes) == ("", {})
