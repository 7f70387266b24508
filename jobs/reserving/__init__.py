"""Sets slots of the job array and the future of hosts aside for big jobs."""
