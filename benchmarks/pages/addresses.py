"""Lists the addresses to fetch, at least one for each kind of page and API route. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.running import BenchmarkError

NAME = "grace"  # of the operator who fetches the pages
CONSOLE, API, SITE = "/console", "/api/v1", "/volunteers"
AREAS = (CONSOLE, API, SITE)

LEFT_OUT = {
    f"{API}/events": "a stream: it does not end",
    f"{API}/batches/{{batch_id}}/events": "a stream: it does not end",
    f"{API}/jobs/{{job_id}}/outputs/{{name}}": "a file: it takes as long as it is large",
    f"{API}/try.js": "a file that the worker holds",
    f"{API}/try.css": "a file that the worker holds",
    f"{CONSOLE}/static/{{version}}/{{name}}": "a file that the worker holds",
    f"{CONSOLE}/static/manual/{{page}}": "a file of the manual",
    f"{SITE}/static/{{version}}/{{name}}": "a file that the worker holds",
    SITE: "leads to the same with a slash",
    f"{CONSOLE}/subscription/{{id}}/{{code}}": "the benchmark's project has no subscriptions",
    f"{SITE}/teams/{{id}}": "the benchmark's volunteers have no teams",
    f"{API}/grants/{{account}}": "the benchmark's project has no grants",
    f"{API}/limits/{{scope}}/{{quantity}}": "the benchmark's project has no limits",
    f"{API}/plan-classes/{{name}}": "the benchmark's project has no plan classes",
    f"{API}/restrictions/{{kind}}/{{name}}": "the benchmark's project has no restrictions",
}


@dataclass(frozen=True, slots=True)
class Scene:
    """The ids of objects in the database.

    `job` is waiting, `done_job` is valid, `instance` has returned and `unsent` is waiting; all belong to the batch
    `large`. `own` is a host, with thousands of results, of the volunteer who fetches the pages; `ranked` is another.
    """

    large: int
    small: int
    job: int
    done_job: int
    instance: int
    unsent: int
    own: int
    ranked: int
    simulation: int
    replay: int
    app: str
    volunteer: str  # e-mail address of any volunteer


def addresses(scene: Scene) -> list[str]:
    """Return all addresses."""
    return [
        "/",
        *(SITE + one for one in _own_pages(scene)),
        *(CONSOLE + one for one in _pages(scene)),
        *(API + one for one in _calls(scene)),
    ]


def check_all_asked(routes: Iterable[str], asked: Sequence[str]) -> None:
    """Raise BenchmarkError, naming the GET routes that have no address and are not in LEFT_OUT.

    >>> check_all_asked(["/console/hosts", "/console/hosts/{id}", "/download/{name}"], ["/console/hosts?q=1"])
    Traceback (most recent call last):
    benchmarks.running.BenchmarkError: nothing asks for /console/hosts/{id}
    """
    known = [one for one in routes if one.startswith(AREAS)]
    reached = {route_of(address, known) for address in asked} | LEFT_OUT.keys()
    missed = sorted({one for one in known if one not in reached})
    if missed:
        raise BenchmarkError(f"no address for {', '.join(missed)}")


def route_of(address: str, routes: Collection[str]) -> str | None:
    """Return an address's route. If several match, the one with the fewest placeholders.

    >>> route_of("/console/batches/new", ["/console/batches/{id}", "/console/batches/new"])
    '/console/batches/new'
    """
    path = address.partition("?")[0]
    found = [one for one in routes if re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(one)), path)]
    return min(found, key=lambda one: (one.count("{"), one), default=None)


def _own_pages(scene: Scene) -> list[str]:
    """Return a volunteer's own pages."""
    own = scene.own
    return [
        "/",
        "/join",
        "/sign-in",
        "/computers",
        f"/computers/{own}",
        f"/computers/{own}/why",
        "/results",
        "/results?outcome=failed",
        f"/results?computer={own}&outcome=waiting",  # no such host
        "/teams",
        "/teams?q=a",
        "/forgotten",
        "/reset",
        "/verify",
        "/preferences",
        "/account",
    ]


def _pages(scene: Scene) -> list[str]:
    """Return the console's pages."""
    large, job = scene.large, scene.job
    return [
        "/",
        "/?range=day",
        "/?range=year",
        "/sign-in",
        "/password",
        "/batches",
        "/batches?sort=order&state=active",
        "/batches?state=at_risk",
        "/batches?sort=-latest_end",
        "/batches?sort=deadline",
        "/batches?q=small+1&qos=afap",
        "/batches/new",
        "/batches/upload",
        f"/batches/{large}",
        f"/batches/{large}?range=hour",
        f"/batches/{scene.small}",
        f"/batches/{large}/jobs",
        f"/batches/{large}/instances",
        f"/batches/{large}/instances?state=unsent",
        f"/batches/{large}/instances?state=valid",
        f"/batches/{large}/jobs?state=valid",
        f"/batches/{large}/jobs?state=failed",
        f"/batches/{large}/abort",
        f"/batches/{large}/clone",
        f"/batches/{large}/retry",
        f"/batches/{large}/errors",
        f"/jobs/{job}",
        f"/jobs/{scene.done_job}",
        f"/instances/{scene.instance}",
        f"/instances/{scene.unsent}",
        "/hosts",
        f"/hosts?q={scene.volunteer.replace('@', '%40')}",
        "/hosts?show=slow",
        "/hosts?show=failing",
        "/hosts?show=silent",
        "/hosts?show=without_work",
        "/hosts?show=without_work&sort=-last_contact",
        "/hosts?show=restricted",
        "/hosts?sort=-failed",
        f"/hosts/{scene.ranked}",
        f"/hosts/{scene.own}",
        f"/hosts/{scene.own}?state=failed",
        "/volunteers",
        "/volunteers?q=no+such+name",
        f"/volunteers?q={scene.volunteer.replace('@', '%40')}",
        "/volunteers/1",
        "/apps",
        f"/apps/{scene.app}",
        f"/apps/{scene.app}/versions/1",
        "/restrictions",
        "/percentiles",
        "/percentiles/preview?deadline.p_tight=0.8",
        "/attention",
        "/batches?state=attention",
        "/unschedulable",
        "/ordering",
        f"/ordering?batch={large}",
        "/ordering/usage",
        "/ordering/preview?ordering.policy=fifo",
        "/ordering/preview?ordering.policy=multifactor&ordering.wait_weight=5000",
        "/simulate",
        f"/simulate/{scene.simulation}",
        f"/simulate/{scene.replay}",
        "/news",
        "/notifications",
        "/settings",
        "/settings?q=deadline",
        "/settings/deadline.p_tight",
        "/people",
        f"/people/person?name={NAME}",
        "/accounts",
        "/accounts/account?name=default",
        "/accounts/submitter?name=default",
        "/accounts/limits",
        "/tokens",
        "/audit",
        "/audit?who=api&what=submit_batch&subject=batch+1&first_day=2026-01-01",
        # a dry run of the decision, which evaluates each of the latest hosts
        f"/hosts/{scene.ranked}/why",
        f"/batches/{large}/why",
        f"/jobs/{job}/why",
    ]


def _calls(scene: Scene) -> list[str]:
    """Return the API's addresses."""
    large, ranked = scene.large, scene.ranked
    return [
        f"/instances/{scene.instance}/trickles",
        "/",
        "/openapi.json",
        "/me",
        "/batches",
        "/batches?limit=1000",
        "/batches?state=active&sort=-latest_end&limit=1000",
        "/batches?state=complete&q=small",
        f"/batches/{large}/instances",
        f"/batches/{large}/instances?state=valid&limit=1000",
        f"/batches/{large}",
        f"/batches/{large}/forecasts",
        f"/batches/{large}/jobs",
        f"/batches/{large}/jobs?limit=1000",
        f"/batches/{large}/outputs?limit=100",
        f"/batches/{large}/results",
        f"/batches/{scene.small}/results.csv",
        f"/batches/{large}/errors",
        f"/batches/{large}/priority",
        f"/jobs/{scene.done_job}",
        f"/jobs/{scene.done_job}/outputs",
        f"/instances/{scene.instance}",
        "/forecasts",
        "/apps",
        f"/apps/{scene.app}",
        f"/apps/{scene.app}/versions",
        f"/apps/{scene.app}/use",
        "/app-versions/1",
        "/usage",
        "/plan-classes",
        "/hosts",
        "/hosts?limit=1000",
        "/hosts?sort=-last_contact",
        "/hosts?platform=x86_64-pc-linux-gnu&label=lab",
        "/hosts?show=slow",
        "/hosts?show=failing",
        "/hosts?show=silent",
        "/hosts?show=restricted",
        f"/hosts/{ranked}",
        f"/hosts/{scene.own}/instances",
        f"/hosts/{scene.own}/results",
        f"/hosts/{ranked}/percentiles",
        "/ranking",
        f"/explain/host/{ranked}",
        f"/explain/batch/{large}",
        f"/explain/job/{scene.job}",
        f"/explain/instance/{scene.unsent}",
        "/processes",
        "/attention",
        "/samples",
        "/samples?range=year",
        "/unschedulable",
        "/restrictions",
        "/settings",
        "/settings/changes",
        "/settings/deadline.p_tight",
        "/thresholds",
        "/thresholds/preview?p_tight=0.8",
        f"/simulations/{scene.simulation}",
        f"/simulations/{scene.replay}",
        "/priority",
        "/priority?limit=1000",
        "/priority/weights",
        "/account-tree",
        "/fairshare",
        "/fairshare/windows",
        "/grants",
        "/limits",
        "/accounts",
        "/accounts/default",
        "/submitters",
        "/submitters/default",
        "/volunteers",
        "/volunteers?limit=1000",
        "/volunteers/found?q=nothing",
        f"/volunteers/{scene.volunteer.replace('@', '%40')}",
        "/people",
        f"/people/{NAME}",
        "/tokens",
        "/audit",
        "/subscriptions",
        "/deliveries",
        "/audit?subject=batch+1&since=1",
    ]
