"""Who asks, and may they? Signing in, sessions, tokens of the API, and what people did."""

from domain.access import Right, Role
from operations.access.door import AccessDoor
from operations.access.who import Person, admit, admit_owner, csrf_of, person_of, require, the_volunteer, volunteer_of

__all__ = [
    "AccessDoor",
    "Person",
    "Right",
    "Role",
    "admit",
    "admit_owner",
    "csrf_of",
    "person_of",
    "require",
    "the_volunteer",
    "volunteer_of",
]
