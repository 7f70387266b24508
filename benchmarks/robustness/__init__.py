"""Compares rules on populations drawn from a number (simulator/robustness.py): medians and worst cases per column.

    python -m benchmarks.robustness --quick                               # six populations, one seed
    python -m benchmarks.robustness --half unseen --json
    python -m benchmarks.robustness --set deadline.min_slack_s=43200
    python -m benchmarks.robustness --variant "tail: feeder.tail_fraction=0.1" --populations 1,3,7 --seeds 5

Every makespan is divided by that of `accelerated` on the same population with the same seed. The table has the median
and the worst value over populations of the medians over seeds. Finished runs are kept in build/robustness until the
code changes, so a command can continue after Ctrl-C, and commands share runs.
"""
