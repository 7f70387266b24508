"""Why a request is not let in."""

from __future__ import annotations

from domain.access import Role
from domain.errors import MusterError
from domain.formatting import in_words
from domain.units import Seconds


class NotSignedInError(MusterError):
    """Nobody is signed in: sign in, or send a token as `Authorization: Bearer …`."""


class WrongPasswordError(MusterError):
    """Name and password do not belong together."""


class TooManyAttemptsError(MusterError):
    """Signing in, or something else that is limited, was tried too often."""

    def __init__(self, wait_s: Seconds, what: str = "signing in was tried") -> None:
        self.wait_s = wait_s
        super().__init__(f"{what} too often: try again in {in_words(max(1, round(wait_s)))}")


class NotAllowedError(MusterError):
    """That is for others to do."""


class RoleNeededError(NotAllowedError):
    """Only people with a certain role may do that."""

    def __init__(self, role: Role, name: str) -> None:
        self.role = role
        article = "an" if role is Role.OPERATOR else "a"
        super().__init__(f"only {article} {role.value} or what stands above may do that, and {name} may not")


class PasswordToChangeError(NotAllowedError):
    """The password was given by another: choose one of your own first."""


class ForgedError(NotAllowedError):
    """The form does not belong to this session: load the page again and send it from there."""
