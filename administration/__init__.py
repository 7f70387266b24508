"""What operators, submitters and volunteers may do and see: one module per subject, for every face."""
