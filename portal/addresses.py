"""Changes of volunteers' e-mail addresses: if the project sends mail, the new address is verified by a link first."""

from __future__ import annotations

import secrets

from administration.access.sign_in import hash_of
from administration.access.who import TooManyAttemptsError
from administration.mail import Mailer
from domain.errors import AlreadyExistsError, ConflictError
from domain.units import HOUR_S, later
from domain.volunteers import NewAddress, VolunteerRecord
from portal.services import PortalServices
from web.rate_limit import Buckets

CODE_S = HOUR_S  # validity of a code sent by mail
MAILS_PER_S = 1 / 600.0  # to one address, and for one volunteer or from one network
MAILS_AT_ONCE = 3
VERIFY = """Hello,

your account at {project} is to use this e-mail address. To confirm it, open this address within an hour:

{url}volunteers/verify?code={code}

If you did not request it, ignore this message. The account then keeps its address.
"""
MOVED = """Hello,

the e-mail address of your account at {project} was changed. If you did not change it, contact the project.
{url}
"""


def address_hash(code: str) -> bytes:
    """Return the hash under which a code for a new address is stored.

    It differs from that of the code itself, because nodes of earlier versions take every code for a new password.
    """
    return hash_of(f"address {code}")


class AddressChanges:
    """Changes addresses, for the account page and for account managers."""

    def __init__(self, services: PortalServices) -> None:
        self._services = services
        self._mailer = Mailer(lambda: services.catalogue.settings.mail)
        self._asked = Buckets(services.clock)

    async def change(self, record: VolunteerRecord, email: str, hashed: str) -> bool:
        """Change the address and the password's hash for it. Return False if a link was sent to verify it first.

        Raises AlreadyExistsError, TooManyAttemptsError.
        """
        signing, volunteers = self._services.authenticator.signing, self._services.store.volunteers
        if not self._mailer.is_on or email == record.email:
            await signing.set_client_hash(record, hashed, email=email)
            return True
        if await volunteers.volunteer_by_email(email) is not None:
            raise AlreadyExistsError("volunteer", email)
        volunteer_id = record.volunteer.volunteer_id
        for key in (email, f"volunteer {volunteer_id}"):
            if wait_s := self._asked.wait_s(key, per_s=MAILS_PER_S, burst=MAILS_AT_ONCE):
                raise TooManyAttemptsError(wait_s, "mail was requested")
        salt, kept = await signing.kept(hashed)
        code, now = secrets.token_urlsafe(32), self._services.clock.now()
        new = NewAddress(email, salt, kept)
        await volunteers.add_mail_code(
            address_hash(code), volunteer_id, expires_at=later(now, CODE_S), now=now, new=new
        )
        self._send(email, "confirm your address", VERIFY, code)
        return False

    async def verify(self, code: str) -> None:
        """Use the code in a link. Raises ConflictError for an unknown or expired one, AlreadyExistsError."""
        volunteers = self._services.store.volunteers
        found = await volunteers.take_mail_code(address_hash(code), now=self._services.clock.now(), is_address=True)
        if found is None or found.new is None:
            raise ConflictError("this link was used already or has expired: change the address again")
        old = (await volunteers.volunteer(found.volunteer_id)).email
        new = found.new
        await volunteers.set_email(
            found.volunteer_id, new.email, salt=new.password_salt, password_hash=new.password_hash
        )
        self._send(old, "your address was changed", MOVED)

    def _send(self, to: str, subject: str, text: str, code: str = "") -> None:
        project = self._services.catalogue.settings.project
        filled = text.format(project=project.name, url=project.url, code=code)
        self._mailer.send_later(to, f"{project.name}: {subject}", filled)
