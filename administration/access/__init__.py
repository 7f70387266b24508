"""Who asks, and may they? Signing in, sessions, tokens of the API, and what people did."""

from administration.access.authentication import AccessDoor
from administration.access.who import (
    Person,
    admit,
    admit_owner,
    csrf_of,
    person_of,
    the_volunteer,
    volunteer_of,
)
from domain.access import Right, Role

__all__ = [
    "AccessDoor",
    "Person",
    "Right",
    "Role",
    "admit",
    "admit_owner",
    "csrf_of",
    "person_of",
    "the_volunteer",
    "volunteer_of",
]
