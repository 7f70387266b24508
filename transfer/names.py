"""Where a file of a given name is stored: always inside its folder. Pure but for resolving links."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from domain.errors import InvalidInputError
from domain.jobs import instance_id_of
from domain.units import InstanceId
from wire.uploads import valid_file_name

MAX_STORED_NAME_BYTES = 240  # leaves room for a suffix within the 255 bytes a file system gives

_OUTPUT = re.compile(r"(?P<instance>.+)_r[0-9]{1,4}")


def shard(name: str) -> str:
    """The sub-folder of a name, one of 256: the first two hex digits of the MD5 of its UTF-8 form.

    >>> shard("pi_1.00_x86_64")
    '7f'
    """
    return hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:2]


def checked_name(name: str) -> str:
    """The name, if it can be stored. Raises InvalidInputError.

    >>> checked_name("pi_3_41_77_r0")
    'pi_3_41_77_r0'
    """
    if not valid_file_name(name) or len(name.encode()) > MAX_STORED_NAME_BYTES:
        expected = f"at most {MAX_STORED_NAME_BYTES} bytes without / \\ % < > & or .., no leading dot"
        raise InvalidInputError("file name", expected, name)
    return name


def stored_path(folder: Path, name: str) -> Path:
    """FOLDER/ab/NAME. Raises InvalidInputError when the name is unsafe or a link leads out of the folder."""
    path = folder / shard(checked_name(name)) / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InvalidInputError("file name", f"a file inside {folder}", name)
    return path


@dataclass(frozen=True, slots=True)
class OutputName:
    """An output file's name, and the instance it belongs to."""

    name: str
    instance_id: InstanceId


def parse_output_name(name: str) -> OutputName | None:
    """The output a name stands for; None for names no output has.

    >>> parse_output_name("pi_3_41_77_r0")
    OutputName(name='pi_3_41_77_r0', instance_id=77)
    >>> parse_output_name("../pi_3_41_77_r0")
    """
    match = _OUTPUT.fullmatch(name)
    if match is None or not valid_file_name(name) or len(name.encode()) > MAX_STORED_NAME_BYTES:
        return None
    instance_id = instance_id_of(match["instance"])
    return None if instance_id is None else OutputName(name, instance_id)
