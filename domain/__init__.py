"""Values, units, clock, settings and refusals. Pure; standard library only."""
