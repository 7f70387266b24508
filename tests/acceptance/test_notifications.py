"""Notifications by a real server, to real mail and to HTTP receivers that are slow, refuse, redirect or die."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import pytest
from yarl import URL

from administration.access.sign_in import stretched
from administration.accounts import AccountKeys
from administration.mail import Mailer
from administration.notifications.delivery import Deliverer
from administration.notifications.webhook import Webhooks
from administration.unschedulable import RefusedByAll, refused_as_json
from domain.access import Right, Role
from domain.notifications import MOST_ATTEMPTS, UNCONFIRMED_S
from domain.settings import FeederSettings, MailSettings, Settings
from domain.units import BatchId
from tests.acceptance.receivers import Hook, Inbox, a_hook, smtp_server
from tests.acceptance.server import LiveServer
from tests.acceptance.test_console import a_browser
from tests.browser.scene import CHEAP, OPERATOR, PASSWORD, add_operator
from tests.ports import free_port
from transfer.keys import load_keys

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "get-notified.md"
HOUR_S = 3600.0
COOL_OFF_S = FeederSettings().cool_off_s
CLIENT_ERROR = 3  # state of a result in a report


@pytest.fixture
async def told(server: LiveServer) -> LiveServer:
    """A project with an app and two hosts, an operator grace and the submitter sue, where webhooks may be local."""
    await server.add_app()
    await add_operator(server)
    lab = await server.store.people.add_submitter("lab", account="default", shares=1.0, now=server.clock.now())
    kept = stretched(PASSWORD, CHEAP)
    await server.store.access.add_person(
        "sue",
        role=Role.SUBMITTER,
        submitter_id=lab.submitter_id,
        password=kept,
        one_time_until=None,
        now=server.clock.now(),
    )
    await server.create("PUT", "/settings/notifications.private_networks", json={"value": "127.0.0.0/8", "why": "x"})
    await server.feed()
    return server


async def token_of(server: LiveServer, name: str) -> str:
    return (await server.workers[0].parts.authenticator.tokens.add(name, "own")).value


async def subscribe(server: LiveServer, address: str, person: str = OPERATOR, **more: Any) -> Mapping[str, Any]:
    channel = "webhook" if "://" in address else "email"
    body = {"channel": channel, "address": address, "project_wide": person == OPERATOR, "person": person, **more}
    return await server.create("POST", "/subscriptions", json=body)


async def notify(server: LiveServer) -> None:
    """Run one round of both periodic tasks."""
    await server._do("events")
    await server._do("notifications")


async def deliveries(server: LiveServer) -> list[Mapping[str, Any]]:
    return list((await server.create("GET", "/deliveries"))["deliveries"])


async def done_batch(server: LiveServer, **more: Any) -> BatchId:
    batch_id = await server.submit(**more)
    await server.create("POST", f"/batches/{batch_id}/abort")
    return batch_id


def kinds_of(hook: Hook) -> list[list[str]]:
    return [[one["kind"] for one in json.loads(body)["events"]] for _, body in hook.kept]


# ------------------------------------------------------------------ events


async def test_complete_batch_is_sent_once_with_a_signature(told: LiveServer) -> None:
    async with a_hook() as hook:
        secret = (await subscribe(told, hook.url))["secret"]
        host = await told.add_host()
        batch_id = await told.submit(name="big")
        await notify(told)
        assert hook.kept == []
        [task] = await host.ask()
        await host.work(task)
        await told.validate()

        await notify(told)
        await told.forward(HOUR_S)
        await notify(told)

        [(headers, body)] = hook.kept
        [event] = json.loads(body)["events"]
        assert (event["kind"], event["batch_id"], event["detail"]["jobs_validated"]) == ("batch_done", batch_id, 1)
        code = re.search(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
        assert code is not None
        guide: dict[str, Any] = {}
        exec(code[1], guide)
        assert guide["is_genuine"](secret, headers["Muster-Signature"], body)
        assert not guide["is_genuine"](secret, headers["Muster-Signature"], body + b" ")
        assert not guide["is_genuine"](secret + "0", headers["Muster-Signature"], body)
        assert not guide["is_genuine"](secret, headers["Muster-Signature"], body, tolerance_s=-1.0)
        [sent] = await deliveries(told)
        assert (sent["state"], sent["attempts"], sent["key"]) == ("sent", 1, headers["Idempotency-Key"])


async def test_batch_that_ends_again_after_a_retry_is_sent(told: LiveServer) -> None:
    async with a_hook() as hook:
        await subscribe(told, hook.url, interval_s=0)
        host = await told.add_host()
        batch_id = await told.submit(jobs={"max_errors": 1})
        [task] = await host.ask()
        host.end(task, CLIENT_ERROR, 1)
        await host.call()
        await told.validate()
        await notify(told)
        await told.forward(HOUR_S)
        await told.create("POST", f"/batches/{batch_id}/retry")
        await told.feed()
        await told.create("POST", f"/batches/{batch_id}/abort")

        await notify(told)
        await notify(told)

        ended = [json.loads(body)["events"][0]["detail"]["state"] for _, body in hook.kept]
        assert (kinds_of(hook), ended) == ([["batch_done"]] * 2, ["complete", "aborted"])


async def test_submitters_hear_of_their_own_batches_only(told: LiveServer) -> None:
    async with a_hook() as all_hook, a_hook() as own_hook:
        await subscribe(told, all_hook.url)
        await subscribe(told, own_hook.url, "sue", kinds=["batch_done"])
        await done_batch(told)
        own = await told.submit(submitter="lab")
        await told.create("POST", f"/batches/{own}/abort")

        await notify(told)

        assert kinds_of(all_hook) == [["batch_done", "batch_done"]]
        [(_, body)] = own_hook.kept
        assert [one["batch_id"] for one in json.loads(body)["events"]] == [own]


async def test_events_within_the_interval_are_sent_together(told: LiveServer) -> None:
    async with a_hook() as hook:
        await subscribe(told, hook.url, interval_s=HOUR_S)
        for _ in range(3):
            await done_batch(told)
            await notify(told)
        assert kinds_of(hook) == [["batch_done"]]

        await told.forward(HOUR_S)
        await notify(told)

        assert kinds_of(hook) == [["batch_done"], ["batch_done"] * 2]


async def test_deadline_at_risk_and_missed_are_two_events(told: LiveServer) -> None:
    async with a_hook() as hook:
        await subscribe(told, hook.url, interval_s=0)
        batch_id = await told.submit(qos="short_deadline", deadline_s=2 * HOUR_S)
        assert told.project.database_url is not None
        connection = await asyncpg.connect(told.project.database_url)
        now = told.clock.now()
        await connection.execute(
            "INSERT INTO forecast (batch_id, made_at, trigger, q10_at, q50_at, q90_at, method, method_because, spread,"
            " completion_at, change, because, jobs_total, jobs_validated, jobs_failed)"
            " VALUES ($1, $2, 'timer', $3, $3, $3, 'warm', '', 1, $3, 'moved', '', 1, 0, 0)",
            *(batch_id, now, now + 3 * HOUR_S),
        )
        await connection.execute("INSERT INTO batch_forecast VALUES ($1, $2, 0)", batch_id, now)
        await connection.close()

        await notify(told)
        await notify(told)
        await told.forward(2 * HOUR_S)
        await notify(told)

        assert kinds_of(hook) == [["batch_at_risk"], ["batch_missed"]]


async def test_failing_app_is_one_event_until_it_recovers(told: LiveServer) -> None:
    async with a_hook() as hook:
        await subscribe(told, hook.url, interval_s=0, kinds=["app_failing"])
        await told.create("PUT", "/settings/notifications.app_errors", json={"value": 2, "why": "few hosts"})
        await told.submit(jobs={"count": 20, "max_errors": 20, "max_instances": 30})
        hosts = [await told.add_host(f"host{number}") for number in range(3)]
        await notify(told)

        async def fail() -> None:
            for host in hosts:
                for task in await host.ask():
                    host.end(task, CLIENT_ERROR, 1)
                    await host.call()
            await told.validate()
            await told.forward(1000.0)
            await notify(told)

        await fail()
        await fail()
        assert kinds_of(hook) == [["app_failing"]]
        await told.forward(1000.0)
        await notify(told)
        await fail()
        assert kinds_of(hook) == [["app_failing"]] * 2
        [event] = json.loads(hook.kept[0][1])["events"]
        assert (event["detail"]["app"], event["detail"]["failures"], event["detail"]["results"]) == ("pi", 3, 3)
        assert event["url"].endswith("/console/apps/pi")


async def test_work_that_every_host_refuses_is_an_event(told: LiveServer) -> None:
    async with a_hook() as hook:
        await subscribe(told, hook.url)
        batch_id = await told.submit()
        now = told.clock.now()
        refused = RefusedByAll(batch_id, 1, False, 3, 2, (("disk", 2),), now, rotated_out=False)
        worker = {"unrunnable": [refused_as_json(refused) | {"since_at": now}]}
        await told.store.process_reports.note("a", "worker", worker, now=now)
        await notify(told)
        assert hook.kept == []
        judged = {"unschedulable": [refused_as_json(replace(refused, active_hosts=2))], "able": []}
        await told.store.process_reports.note("b", "background", {"judged": judged, "duties": []}, now=now)

        await notify(told)
        await notify(told)

        [(_, body)] = hook.kept
        [event] = json.loads(body)["events"]
        assert (event["kind"], event["batch_id"], event["detail"]["code"]) == ("work_stuck", batch_id, "disk")


async def test_lost_version_is_an_event_after_a_back_off(told: LiveServer) -> None:
    """A version that follows at once prevents it; each later loss is an event of its own."""
    async with a_hook() as hook:
        await subscribe(told, hook.url, interval_s=0)
        batch_id = await told.submit()

        async def put(state: str) -> None:
            await told.create("PATCH", "/app-versions/1", json={"state": state})
            await notify(told)

        await put("withdrawn")
        await told.forward(COOL_OFF_S - 1.0)
        await put("offered")
        assert hook.kept == []
        for _ in range(2):
            await told.forward(HOUR_S)
            await put("withdrawn")
            for _ in range(2):
                await told.forward(COOL_OFF_S + 1.0)
                await notify(told)
            await put("offered")

        events = [one for _, body in hook.kept for one in json.loads(body)["events"]]
        assert [(one["kind"], one["batch_id"], one["detail"]["code"]) for one in events] == [
            ("work_stuck", batch_id, "no_app_version")
        ] * 2


# ------------------------------------------------------------------ receivers that fail


async def test_refused_delivery_is_retried_until_a_limit(told: LiveServer) -> None:
    async with a_hook(status=500) as hook, a_hook() as other:
        await subscribe(told, hook.url, interval_s=0)
        await subscribe(told, other.url, interval_s=0)
        await done_batch(told)

        for _ in range(MOST_ATTEMPTS + 2):
            await notify(told)
            await told.forward(7 * HOUR_S)

        assert len({headers["Idempotency-Key"] for headers, _ in hook.kept}) == 1
        assert len({body for _, body in hook.kept}) == 1
        assert len(hook.kept) == MOST_ATTEMPTS
        assert len(other.kept) == 1
        rows = {one["address"]: one for one in await deliveries(told)}
        assert (rows[hook.url]["state"], rows[hook.url]["attempts"]) == ("failed", MOST_ATTEMPTS)
        assert "500" in rows[hook.url]["outcome"]
        assert rows[other.url]["state"] == "sent"


async def test_redirect_is_not_followed(told: LiveServer) -> None:
    async with a_hook() as target, a_hook(status=307, reply_headers={"Location": target.url}) as hook:
        await subscribe(told, hook.url)
        await done_batch(told)

        await notify(told)

        assert (len(hook.kept), target.kept) == (1, [])
        [row] = await deliveries(told)
        assert (row["state"], row["attempts"]) == ("waiting", 1)


async def test_dead_receiver_gets_the_message_when_it_returns(told: LiveServer) -> None:
    async with a_hook() as hook:
        url = hook.url
        await subscribe(told, url, interval_s=0)
    await done_batch(told)
    await notify(told)
    [row] = await deliveries(told)
    assert (row["state"], row["attempts"]) == ("waiting", 1)

    async with a_hook(port=int(url.split(":")[2].split("/")[0])) as hook:
        await told.forward(30.0)
        await notify(told)
        assert hook.kept == []
        await told.forward(31.0)
        await notify(told)

        assert kinds_of(hook) == [["batch_done"]]


async def test_silent_receiver_delays_no_other(told: LiveServer) -> None:
    async with a_hook(silent=True) as silent, a_hook() as other:
        await subscribe(told, silent.url)
        await subscribe(told, other.url)
        await done_batch(told)
        await told._do("events")

        report = await a_deliverer(told, Webhooks(lambda: "127.0.0.1", aiohttp.ClientTimeout(total=0.3))).run_once()

        await silent.dropped.wait()
        assert (report.attempts, report.more) == (2, False)
        assert kinds_of(other) == [["batch_done"]]
        assert {one["address"]: one["state"] for one in await deliveries(told)} == {
            silent.url: "waiting",
            other.url: "sent",
        }


async def test_message_repeats_if_its_success_was_not_recorded(told: LiveServer) -> None:
    async with a_hook() as hook:
        await subscribe(told, hook.url)
        await done_batch(told)
        await told._do("events")
        [(claimed, _, _)] = await told.store.notifications.due_deliveries(
            told.clock.now(), 10, mails=4
        )  # and the process dies

        await notify(told)
        assert hook.kept == []
        await told.forward(61.0)
        await notify(told)

        assert [headers["Idempotency-Key"] for headers, _ in hook.kept] == [claimed.key]


async def test_waiting_events_are_bounded(told: LiveServer) -> None:
    async with a_hook(status=503) as hook:
        await subscribe(told, hook.url, interval_s=0)
        await done_batch(told)
        await notify(told)
        assert told.project.database_url is not None
        connection = await asyncpg.connect(told.project.database_url)
        await connection.execute(
            "WITH new AS (INSERT INTO event (key, kind, raised_at, detail)"
            " SELECT 'test ' || n, 'test', $1, '{}' FROM generate_series(1, 250) AS n RETURNING event_id)"
            " INSERT INTO notification (subscription_id, event_id) SELECT 1, event_id FROM new",
            told.clock.now(),
        )
        await connection.close()
        await done_batch(told)
        await told._do("events")
        hook.status = 200

        for _ in range(3):
            await told.forward(61.0)
            await notify(told)

        bodies = [json.loads(body) for _, body in hook.kept[1:]]
        assert [(len(one["events"]), one["dropped"]) for one in bodies] == [(1, 0), (100, 51), (100, 0)]


# ------------------------------------------------------------------ addresses and rights


async def test_private_addresses_are_refused_by_default(told: LiveServer) -> None:
    async with a_hook() as hook:
        await subscribe(told, hook.url)
        named = hook.url.replace("127.0.0.1", "localhost")
        await subscribe(told, named)
        await told.create("DELETE", "/settings/notifications.private_networks", params={"why": "x"})
        await told.feed()
        for address in (hook.url, "https://127.0.0.1/x", "https://[::1]/x", "https://169.254.169.254/x"):
            status, answer = await told.api(
                "POST",
                "/subscriptions",
                json={"channel": "webhook", "address": address, "project_wide": True, "person": OPERATOR},
            )
            assert (status, answer["field"]) == (422, "address")
        await done_batch(told)

        await notify(told)

        assert hook.kept == []
        assert [(one["state"], one["attempts"]) for one in await deliveries(told)] == [("waiting", 1)] * 2


async def test_new_subscription_is_named_in_the_audit_trail(told: LiveServer) -> None:
    async with a_hook() as hook:
        await subscribe(told, hook.url)

    [act] = await told.store.access.acts(limit=1)
    assert (act.what, act.target) == ("add_subscription", "subscription 1")


async def test_subscriptions_of_others_stay_out_of_reach(told: LiveServer) -> None:
    async with a_hook() as hook:
        await subscribe(told, hook.url)
        token = await token_of(told, "sue")
        asked = {"channel": "webhook", "address": hook.url}

        answers = [
            await told.api("PATCH", "/subscriptions/1", json={"paused": True}, token=token),
            await told.api("DELETE", "/subscriptions/1", token=token),
            await told.api("POST", "/subscriptions/1/secret", token=token),
            await told.api("GET", "/deliveries", params={"subscription_id": 1}, token=token),
            await told.api("POST", "/subscriptions", json={**asked, "project_wide": True}, token=token),
            await told.api("POST", "/subscriptions", json={**asked, "person": OPERATOR}, token=token),
        ]

        assert [status for status, _ in answers] == [404, 404, 404, 404, 403, 403]
        _, own = await told.api("GET", "/subscriptions", token=token)
        assert own["subscriptions"] == []
        status, _ = await told.api("POST", "/subscriptions", json=asked, token=token)
        assert status == 201
        read = await told.workers[0].parts.authenticator.tokens.add("sue", "narrow", rights=[Right.READ])
        assert (await told.api("POST", "/subscriptions", json=asked, token=read.value))[0] == 403


async def test_former_operator_gets_nothing_more(told: LiveServer) -> None:
    async with a_hook() as hook:
        await subscribe(told, hook.url)
        await done_batch(told)
        await told._do("events")
        await told.create("PATCH", f"/people/{OPERATOR}", json={"role": "viewer"})

        await notify(told)

        assert hook.kept == []


@pytest.mark.parametrize(
    ("path", "off", "on"),
    [
        ("/subscriptions/1", {"paused": True}, {"paused": False}),
        (f"/people/{OPERATOR}", {"role": "viewer"}, {"role": "operator"}),
        (f"/people/{OPERATOR}", {"active": False}, {"active": True}),
    ],
)
async def test_retry_waits_while_its_subscription_may_not(
    told: LiveServer, path: str, off: Mapping[str, Any], on: Mapping[str, Any]
) -> None:
    async with a_hook(status=503) as hook:
        await subscribe(told, hook.url)
        await done_batch(told)
        await notify(told)
        assert len(hook.kept) == 1
        hook.status = 204
        await told.create("PATCH", path, json=off)
        await told.forward(61.0)
        await notify(told)
        [row] = await deliveries(told)
        assert (len(hook.kept), row["state"], row["attempts"]) == (1, "waiting", 1)

        await told.create("PATCH", path, json=on)
        await notify(told)

        [row] = await deliveries(told)
        assert (len(hook.kept), row["state"]) == (2, "sent")


async def test_rotated_secret_overlaps_for_a_day(told: LiveServer) -> None:
    async with a_hook() as hook:
        await subscribe(told, hook.url)
        assert (await told.create("POST", "/subscriptions/1/secret"))["secret"].startswith("whsec_")
        await told.create("POST", "/subscriptions/1/test")
        await notify(told)
        await told.forward(25 * HOUR_S)
        await told.create("POST", "/subscriptions/1/test")
        await notify(told)

        signed = [headers["Muster-Signature"].count("v1=") for headers, _ in hook.kept]
        assert signed == [2, 1]


# ------------------------------------------------------------------ mail


@asynccontextmanager
async def an_inbox(server: LiveServer) -> AsyncIterator[Inbox]:
    inbox = Inbox()
    async with smtp_server(inbox) as inbox.port:
        settings = {"server": "127.0.0.1", "port": inbox.port, "tls": "none", "sender": "project@example.org"}
        for name, value in settings.items():
            await server.create("PUT", f"/settings/mail.{name}", json={"value": value, "why": "test"})
        await server.feed()
        yield inbox


async def test_mail_is_confirmed_sent_and_ended_by_one_click(told: LiveServer) -> None:
    async with an_inbox(told) as inbox:
        await subscribe(told, "Grace@example.org", interval_s=0)
        await done_batch(told)
        await notify(told)
        asked = await inbox.next()
        assert (asked["To"], asked["List-Unsubscribe"]) == ("grace@example.org", None)
        link = re.search(r"http\S+/subscription/1/[0-9a-f]{32}", asked.get_content())
        assert link is not None
        async with told.http.get(link[0]) as page:  # a link scanner
            assert page.status == 200
        await done_batch(told)
        await notify(told)
        assert len(inbox.mails) == 1

        async with told.http.post(link[0], data={"choice": "confirm"}) as page:
            assert page.status == 200
        batch_id = await done_batch(told)
        await notify(told)

        mail = await inbox.next()
        assert f"/console/batches/{batch_id}" in mail.get_content()
        assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
        assert mail["Message-ID"].endswith("@example.org>")
        async with told.http.post(mail["List-Unsubscribe"].strip("<>"), data={"List-Unsubscribe": "One-Click"}) as page:
            assert page.status == 200
        async with told.http.get(link[0]) as page:
            assert page.status == 404
        await done_batch(told)
        await notify(told)
        assert len(inbox.mails) == 2


async def test_messages_to_confirm_an_address_are_limited(told: LiveServer) -> None:
    async with an_inbox(told), a_browser(told, "sue") as sue:
        token = await token_of(told, "sue")
        body = {"channel": "email", "address": "Victim@example.org"}
        statuses = []
        for number in range(1, 8):
            status, _ = await told.api("POST", "/subscriptions", json=body, token=token)
            statuses.append(status)
            await told.api("DELETE", f"/subscriptions/{number}", token=token)
        form = {"address": "victim@example.org", "kind": "batch_done", "minutes": "5"}
        shown, _, _ = await sue.post("/notifications", form)
        other, _ = await told.api("POST", "/subscriptions", json={**body, "address": "b@example.org"}, token=token)

        assert (statuses, shown, other) == ([201] * 6 + [429], 429, 201)


async def test_unconfirmed_subscription_is_forgotten_after_a_week(told: LiveServer) -> None:
    async with an_inbox(told), a_hook() as hook:
        await subscribe(told, "a@example.org")
        await subscribe(told, hook.url)
        await told.forward(UNCONFIRMED_S - HOUR_S)
        await told._do("events")
        assert len((await told.create("GET", "/subscriptions"))["subscriptions"]) == 2
        await told.forward(2 * HOUR_S)
        await told._do("events")

        [kept] = (await told.create("GET", "/subscriptions"))["subscriptions"]
        assert kept["address"] == hook.url


async def test_link_with_another_code_does_nothing(told: LiveServer) -> None:
    async with a_hook() as hook:
        await subscribe(told, hook.url)
        for code in ("0" * 32, "é"):
            async with told.http.post(f"{told.url}console/subscription/1/{code}") as page:
                assert page.status == 404
        assert len((await told.create("GET", "/subscriptions"))["subscriptions"]) == 1


async def test_link_of_no_possible_subscription_is_not_found(told: LiveServer) -> None:
    async with a_hook() as hook:
        await subscribe(told, hook.url)
    for number, code in ((2**40, "0" * 32), (2**62, "0" * 32), (1, "%ff")):
        url = URL(f"{told.url}console/subscription/{number}/{code}", encoded=True)
        async with told.http.get(url) as page:
            assert page.status == 404
        async with told.http.post(url, data={"choice": "confirm"}) as page:
            assert page.status == 404
    at = URL(told.url)
    assert at.host is not None
    reader, writer = await asyncio.open_connection(at.host, at.port)
    head = f"GET {at.path}console/subscription/1/".encode() + b"\xff\xfe HTTP/1.1\r\nHost: a\r\n"
    writer.write(head + b"Connection: close\r\n\r\n")
    assert (await reader.readline()).split()[1] in (b"400", b"404")
    writer.close()


async def test_ids_that_no_table_can_hold_are_not_found(told: LiveServer) -> None:
    async with a_browser(told, OPERATOR) as grace:
        actions = [f"/notifications/{2**40}/{one}" for one in ("test", "pause", "resume", "delete", "rotate")]
        for path in (*actions, f"/tokens/{2**40}/revoke", f"/news/{2**40}/delete"):
            status, _, _ = await grace.post(path, {}, form="/notifications")
            assert (path, status) == (path, 404)


async def test_round_claims_as_many_mails_as_are_sent_at_once(told: LiveServer) -> None:
    async with an_inbox(told) as inbox:
        for number in range(5):
            await subscribe(told, f"grace{number}@example.org", interval_s=0)
        mailer = Mailer(lambda: MailSettings(server="127.0.0.1", port=inbox.port, tls="none", sender="a@example.org"))

        reports = [await a_deliverer(told, Webhooks(lambda: ""), mailer).run_once() for _ in range(2)]

        assert [(one.attempts, one.more) for one in reports] == [(4, True), (1, False)]
        assert len(inbox.mails) == 5


async def test_absent_mail_server_is_an_outcome(told: LiveServer) -> None:
    async with an_inbox(told):
        await subscribe(told, "grace@example.org")
    await told.create("PUT", "/settings/mail.port", json={"value": free_port(), "why": "test"})

    await notify(told)

    [row] = await deliveries(told)
    assert (row["state"], row["attempts"]) == ("waiting", 1)
    status, _ = await told.api("DELETE", "/settings/mail.server", params={"why": "test"})
    assert status == 200
    await told.feed()
    body = {"channel": "email", "address": "a@example.org", "project_wide": True, "person": OPERATOR}
    assert (await told.api("POST", "/subscriptions", json=body))[0] == 409


# ------------------------------------------------------------------ the console


async def test_console_subscribes_tests_pauses_and_deletes(told: LiveServer) -> None:
    async with a_hook() as hook, a_browser(told, OPERATOR) as grace:
        form = {"address": hook.url, "kind": "batch_done", "batches": "all", "minutes": "5"}
        status, _, page = await grace.post("/notifications", form)
        assert status == 200
        assert re.search(r"whsec_[0-9a-f]{64}", page)
        status, page = await grace.get("/notifications")
        assert "whsec_" not in page
        assert hook.url in page
        status, _, _ = await grace.post("/notifications", {**form, "address": "ftp://x"})
        assert status == 422
        await grace.post("/notifications/1/test", {}, form="/notifications")
        await notify(told)
        assert kinds_of(hook) == [["test"]]
        await grace.post("/notifications/1/pause", {}, form="/notifications")
        await done_batch(told)
        await told.forward(HOUR_S)
        await notify(told)
        assert len(hook.kept) == 1
        status, _, page = await grace.post("/notifications/1/rotate", {}, form="/notifications")
        assert re.search(r"whsec_[0-9a-f]{64}", page)
        await grace.post("/notifications/1/delete", {}, form="/notifications")
        _, page = await grace.get("/notifications")
        assert hook.url not in page
        acts = {one.what for one in await told.store.access.acts(limit=20)}
        assert acts >= {"add_subscription", "test_subscription", "pause_subscription", "delete_subscription"}


def a_deliverer(server: LiveServer, webhooks: Webhooks, mailer: Mailer | None = None) -> Deliverer:
    keys = AccountKeys(load_keys(server.project.keys_dir).account_secret)
    settings = Settings()
    mailer = mailer or Mailer(lambda: settings.mail)
    return Deliverer(server.store.notifications, keys, mailer, webhooks, lambda: settings, server.clock)
