"""Operations for operators, submitters and volunteers, one module per subject. Used by API, console and commands."""
