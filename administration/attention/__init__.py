"""What needs an operator's attention, worst first: late batches, failing versions, silent hosts, disks, backups."""
