"""Where concrete things meet and people look."""
