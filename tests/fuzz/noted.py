"""Records a process's progress in a file, so that it counts even if the process ends early."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(slots=True)
class Noted:
    """Executions of one turn.

    >>> import tempfile
    >>> noted = Noted.of(Path(tempfile.mkdtemp()), "decode", 7)
    >>> noted.executions += 3
    >>> noted.write()
    >>> noted.taken(), noted.taken()
    (3, 0)
    """

    path: Path
    executions: int = 0

    @classmethod
    def of(cls, folder: Path, target: str, seed: int) -> Noted:
        return cls(folder / f"{target}-{seed}.executions")

    def write(self) -> None:
        self.path.write_text(f"{self.executions}\n", encoding="utf-8")

    def taken(self) -> int:
        """Return the record and delete it, so that nothing counts twice."""
        if not self.path.exists():
            return 0
        executions = int(self.path.read_text(encoding="utf-8"))
        self.path.unlink()
        return executions
