"""Operations for operators, submitters and volunteers, one module per subject, behind API, console and commands."""
