#!/usr/bin/env python3
"""Counts the primes of an interval: `primes.py FIRST LENGTH INDEX` counts the one with that index and writes `out`.

Volunteers' clients run this file unchanged. It needs no library, works in its own directory, and tells the client that
it has finished by creating the file `boinc_finish_called`.
"""

import sys


def primes_between(first: int, length: int) -> int:
    """Return the number of primes in [first, first + length), using a sieve."""
    last = first + length
    is_prime = bytearray([1]) * length
    for number in range(first, min(last, 2)):
        is_prime[number - first] = 0
    divisor = 2
    while divisor * divisor < last:
        start = max(divisor * divisor, (first + divisor - 1) // divisor * divisor)
        if start < last:
            is_prime[start - first :: divisor] = bytes(len(range(start, last, divisor)))
        divisor += 1
    return sum(is_prime)


def main() -> int:
    """Compute one job; return 3 if the job is meant to fail."""
    if sys.argv[1] == "--fail":
        print("asked to fail", file=sys.stderr)
        return 3
    length, index = int(sys.argv[2]), int(sys.argv[3])
    first = int(sys.argv[1]) + index * length
    with open("out", "w") as out:
        out.write(f"{first} {length} {primes_between(first, length)}\n")
    print(f"counted primes from {first}", file=sys.stderr)
    with open("boinc_finish_called", "w") as finished:
        finished.write("0\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
