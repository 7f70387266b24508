"""How good are the policies? The measured sections of docs/policy-quality.md, with their charts, made by one command.

    python -m benchmarks.policy_quality                                   # the whole page: hours, it says how many
    python -m benchmarks.policy_quality --measured small                  # one section anew
    python -m benchmarks.policy_quality --variants department large --frontier small --seeds 2

A run is kept in build/policy-quality until the code that made it changes, so that a command that was broken off goes
on where it was, and sections share runs. What stands between a section's marks on the page is replaced, nothing else.
"""
