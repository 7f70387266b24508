"""Properties of every reply: a client that requests work gets a job or a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.apps import ANONYMOUS, NVIDIA, App
from domain.batches import QoS
from domain.units import AppId, AppVersionId, InstanceId, Instant, Seconds
from tests.builders import LINUX, NOW, a_job_class, a_plan_class, an_app_version
from tests.unit.scheduler.project import Project, a_project, a_request, listed
from wire.messages import CoprocRequest, SchedulerReply, SchedulerRequest

WISHES = st.sampled_from([0.0, 1e-300, 1.0, 7200.0, 1e12, float("inf"), -1.0])
SETTINGS: dict[str, st.SearchStrategy[object]] = {
    "scheduler__jobs_per_request": st.integers(1, 2),
    "scheduler__in_progress_per_cpu": st.integers(1, 3),
    "scheduler__daily_quota_start": st.integers(1, 3),
    "scheduler__urgent_share_fraction": st.sampled_from([0.0, 0.5, 1.0]),
    "scheduler__newcomer_fraction": st.sampled_from([0.0, 0.5, 1.0]),
    "deadline__rule": st.sampled_from(["muster", "proposal", "fixed"]),
    "ordering__displace": st.booleans(),
}


@st.composite
def requests(draw: st.DrawFn) -> SchedulerRequest:
    """Generate calls of one client with any contents."""
    coprocs = tuple(
        CoprocRequest(kind, draw(st.integers(0, 2)), req_s=Seconds(draw(WISHES)), usable=draw(st.booleans()))
        for kind in draw(st.lists(st.sampled_from([NVIDIA, "", "cpu"]), max_size=2))
    )
    request = a_request(
        cpu_req_s=Seconds(draw(WISHES)),
        cpu_req_instances=draw(st.sampled_from([0.0, 1.0, 2.0])),
        platforms=draw(st.sampled_from([(LINUX,), (), ("sparc",), (ANONYMOUS,)])),
        coprocs=coprocs,
        dont_send_work=draw(st.booleans()) and draw(st.booleans()),
        disk_project_share_bytes=draw(st.sampled_from([0.0, 1e11])),
    )
    ncpus, ram_bytes = draw(st.sampled_from([0, 1, 2, 64])), draw(st.sampled_from([0.0, 8e9]))
    return replace(request, host=replace(request.host, ncpus=ncpus, ram_bytes=ram_bytes))


BATCHES = st.lists(
    st.tuples(st.integers(1, 4), st.sampled_from(QoS), st.sampled_from([1e11, 3.6e12, 1e15]), st.booleans()), max_size=3
)


def asks(request: SchedulerRequest) -> bool:
    wishes = (request.cpu_req_s, *(coproc.req_s for coproc in request.coprocs))
    return not request.dont_send_work and max(wishes) > 0


async def with_gpu_app(project: Project) -> AppId:
    app = await project.store.applications.add_app(App(AppId(0), "gpu"))
    cuda = a_plan_class(name="cuda", ncpus=0.1, gpu_type=NVIDIA)
    await project.store.applications.put_plan_class(cuda)
    version = an_app_version(app_version_id=AppVersionId(0), app_id=app.app_id, plan_class=cuda, files=())
    await project.store.applications.add_app_version(version)
    held = await project.store.applications.load_catalogue()
    project.shelf.held = replace(held, settings=project.shelf.held.settings)
    return app.app_id


async def replies(
    batches: Sequence[tuple[int, QoS, float, bool]],
    calls: Sequence[tuple[SchedulerRequest, bool]],
    *,
    ended: bool,
    named: dict[str, Any],
) -> list[tuple[SchedulerRequest, SchedulerReply, bool]]:
    """Yield the calls of one client, each with its reply and whether the metrics got a reason.

    The client may lose its jobs before a call; `ended`: they end otherwise before they are resent.
    """
    project = await a_project(**named)
    gpu_app = await with_gpu_app(project)
    for jobs, qos, flop, on_gpu in batches:
        await project.submit(
            jobs,
            job_class=a_job_class(fpops_est_flop=flop),
            qos=qos,
            deadline_at=Instant(NOW + 86_400.0) if qos is QoS.SHORT_DEADLINE else None,
            app_id=gpu_app if on_gpu else AppId(1),
        )
    if ended:
        project.ledger.ended.update(InstanceId(number) for number in range(1, 20))
    found = []
    host_id, names = 0, list[str]()
    for seqno, (request, forgets) in enumerate(calls, 1):
        known = () if forgets else listed(*names)
        said = replace(request, host_id=host_id, rpc_seqno=seqno, other_results=known)
        reply = await project.answer(said)
        host_id, names = reply.host_id or host_id, [*names, *(result.name for result in reply.results)]
        found.append((said, reply, bool(project.counts.answered[-1]["refusals"])))
    return found


@settings(max_examples=150, deadline=None)
@given(
    BATCHES,
    st.lists(st.tuples(requests(), st.booleans()), min_size=1, max_size=5),
    st.booleans(),
    st.fixed_dictionaries(SETTINGS),
)
def test_a_client_that_asks_gets_a_job_or_a_reason(
    batches: list[tuple[int, QoS, float, bool]],
    calls: list[tuple[SchedulerRequest, bool]],
    ended: bool,
    named: dict[str, Any],
) -> None:
    for request, reply, has_reason in asyncio.run(replies(batches, calls, ended=ended, named=named)):
        if asks(request) and not reply.results:
            assert has_reason
            assert reply.messages and reply.messages[0].text.startswith("No work sent. ")
