"""Notifications: subscriptions with their forms, the latest deliveries, and the page behind the link in a message."""

from __future__ import annotations

from aiohttp import web

from administration.access.who import NotAllowedError, TooManyAttemptsError, admit
from administration.notifications.subscriptions import NewSecret, Subscriptions
from domain.access import Role
from domain.errors import ConflictError, InvalidInputError, MusterError, NotFoundError
from domain.notifications import KINDS, Channel
from domain.units import MINUTE_S
from web.handlers import LARGEST_INT, Fields, Pages, PageServices, fields_of, get, id_of, post, whole_number
from web.rendering import RenderedPage
from web.sign_in import status_of

SHOWN = 50
MOST_SUBSCRIPTIONS = 1000
KIND_WORDS = {
    "batch_done": "a batch is complete or aborted",
    "batch_at_risk": "a batch may miss its deadline",
    "batch_missed": "a batch missed its deadline",
    "app_failing": "many results of an app fail",
    "work_stuck": "no active host can run jobs of a batch",
}
MINUTES = (0, 5, 15, 60, 1440)


class NotificationPages(Pages[PageServices]):
    def __init__(self, services: PageServices, subscriptions: Subscriptions) -> None:
        super().__init__(services)
        self._subscriptions = subscriptions

    @get("/notifications", "notifications")
    async def notifications(self, request: web.Request) -> RenderedPage:
        return await self._notifications(request)

    @post("/notifications", "notifications_post")
    async def add(self, request: web.Request) -> RenderedPage | web.Response:
        person, form = admit(request, Role.SUBMITTER), await request.post()
        fields = {key: value for key, value in form.items() if isinstance(value, str)}
        address = fields.get("address", "").strip()
        try:
            added = await self._subscriptions.add(
                person,
                Channel.WEBHOOK if "://" in address else Channel.EMAIL,
                address,
                kinds=[str(one) for one in form.getall("kind", [])],
                project_wide=fields.get("batches") == "all",
                interval_s=MINUTE_S * whole_number(fields.get("minutes", ""), "minutes", 0, MINUTES[-1]),
            )
        except (InvalidInputError, ConflictError, NotAllowedError, NotFoundError, TooManyAttemptsError) as error:
            kept = {**fields, "kinds": " ".join(str(one) for one in form.getall("kind", []))}
            return await self._notifications(request, kept, error)
        number = added.subscription.subscription_id
        await self._services.authenticator.note(request, "add_subscription", f"subscription {number}", address=address)
        if added.secret is None:
            return self._services.go("notifications", "asked")
        return await self._notifications(request, made=added)

    @post("/notifications/{id}/{action:test|pause|resume|delete|rotate}", "notification_action")
    async def act(self, request: web.Request) -> RenderedPage | web.Response:
        person, number, action = (
            admit(request, Role.SUBMITTER),
            id_of(request, LARGEST_INT),
            request.match_info["action"],
        )
        made: NewSecret | None = None
        match action:
            case "test":
                await self._subscriptions.test(person, number)
            case "delete":
                await self._subscriptions.delete(person, number)
            case "rotate":
                made = await self._subscriptions.rotate(person, number)
            case _:
                await self._subscriptions.set(person, number, paused=action == "pause")
        await self._services.authenticator.note(request, f"{action}_subscription", f"subscription {number}")
        if made is not None:
            return await self._notifications(request, made=made)
        return self._services.go("notifications", "tested" if action == "test" else "subscription")

    # ------------------------------------------------------------------ the link in a message, which needs no sign-in

    @get("/subscription/{id}/{code}", "subscription")
    async def subscription(self, request: web.Request) -> RenderedPage:
        return await self._linked(request, "")

    @post("/subscription/{id}/{code}", "subscription_post")
    async def answer(self, request: web.Request) -> RenderedPage:
        """Start or end a subscription. Mail programs post without a choice to end it (RFC 8058)."""
        number, code = id_of(request, LARGEST_INT), request.match_info["code"]
        page = await self._linked(request, "ended")
        if (await fields_of(request)).get("choice") == "confirm":
            await self._subscriptions.confirm(number, code)
            return await self._linked(request, "confirmed")
        await self._subscriptions.stop(number, code)
        return page

    async def _linked(self, request: web.Request, done: str) -> RenderedPage:
        found = await self._subscriptions.by_code(id_of(request, LARGEST_INT), request.match_info["code"])
        values = {"one": found, "done": done, "action": request.path}
        return RenderedPage("subscription.html", "Notifications", "-", values=values)

    async def _notifications(
        self,
        request: web.Request,
        fields: Fields | None = None,
        wrong: MusterError | None = None,
        made: NewSecret | None = None,
    ) -> RenderedPage:
        person, mail = admit(request, Role.VIEWER), self._services.catalogue.settings.mail
        values: dict[str, object] = {
            "subscriptions": await self._subscriptions.own(person, limit=MOST_SUBSCRIPTIONS),
            "deliveries": await self._subscriptions.deliveries(person, limit=SHOWN),
            "fields": fields or {"kinds": " ".join(KINDS)},
            "wrong": wrong,
            "made": made,
            "kinds": KIND_WORDS,
            "mails": bool(mail.server and mail.sender),
            "minutes": MINUTES,
            "may": person.may(Role.SUBMITTER),
            "may_all": person.may(Role.OPERATOR),
            "owns": person.submitter_id is not None,
        }
        page_status = 403 if isinstance(wrong, NotAllowedError) else status_of(wrong)
        return RenderedPage("notifications.html", "Notifications", "notifications", values=values, status=page_status)
