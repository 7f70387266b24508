"""Errors in forms: shown again with what was entered, at the field that is wrong."""

from __future__ import annotations

from dataclasses import dataclass

from administration.access.who import NotAllowedError
from domain.errors import AlreadyExistsError, ConflictError, InvalidInputError, MusterError, NotFoundError
from web.form_words import at_field, in_form
from web.handlers import Fields
from web.sign_in import status_of

REFUSED = (InvalidInputError, AlreadyExistsError, NotFoundError, ConflictError, NotAllowedError)


@dataclass(frozen=True, slots=True)
class FormError:
    """A refused form of a page: its name on the page, the error, and what was entered.

    `field` is the field to correct, "" if the error concerns the whole form.
    """

    form: str
    fields: Fields
    error: MusterError
    field: str

    @property
    def text(self) -> str:
        """Return the error; without the field's name if it is shown at the field."""
        if self.field and isinstance(self.error, InvalidInputError):
            return at_field(self.error)
        return in_form(self.error)

    @property
    def status(self) -> int:
        match self.error:
            case NotFoundError():
                return 404
            case NotAllowedError():
                return 403
            case ConflictError():
                return 409
            case _:
                return status_of(self.error)


def form_error(form: str, fields: Fields, error: MusterError) -> FormError:
    """Return a form's error at its field: the name that is taken, or the field that contains an unknown name.

    An unknown `name` concerns the whole form: it is the object of the page, or is looked up under several kinds.

    >>> form_error("add", {"name": "ada"}, AlreadyExistsError("person", "ada")).field
    'name'
    """
    match error:
        case InvalidInputError():
            field = error.field
        case AlreadyExistsError():
            field = "new_name" if "new_name" in fields else "name"
        case NotFoundError():
            field = next((name for name, value in fields.items() if value == error.key and name != "name"), "")
        case _:
            field = ""
    return FormError(form, fields, error, field if field in fields else "")
