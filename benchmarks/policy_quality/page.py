"""The page: what stands between a section's marks is replaced, nothing else. Pure."""

from __future__ import annotations


def with_section(page: str, name: str, section: str, *, after: str = "") -> str:
    """Marks that the page does not have are put behind the section `after`, or at its end.

    >>> page = "a\\n<!-- measured: x -->\\nold\\n<!-- end: x -->\\nb\\n"
    >>> with_section(page, "x", "new\\n") == page.replace("old", "new")
    True
    >>> print(with_section(page, "y", "new\\n", after="x"), end="")
    a
    <!-- measured: x -->
    old
    <!-- end: x -->
    <BLANKLINE>
    <!-- measured: y -->
    new
    <!-- end: y -->
    b
    """
    begin, end = marks(name)
    whole = f"{begin}{section}{end}"
    if begin in page and end in page:
        before, _, rest = page.partition(begin)
        return f"{before}{whole}{rest.partition(end)[2]}"
    before, found, rest = page.partition(marks(after)[1])
    if found:
        return f"{before}{found}\n{whole}{rest}"
    return f"{page.rstrip()}\n\n{whole}"


def marks(name: str) -> tuple[str, str]:
    """
    >>> marks("small")
    ('<!-- measured: small -->\\n', '<!-- end: small -->\\n')
    """
    return f"<!-- measured: {name} -->\n", f"<!-- end: {name} -->\n"
