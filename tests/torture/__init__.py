"""What strangers, crashes and wrong arguments do to the library, as often as one likes.

``python -m tests.torture KIND --seed 0 --count 1000`` does so many cases of a kind and prints a
report as JSON; ``make torture`` does all kinds. A case that goes wrong is named with its number,
and ``--only NUMBER`` repeats it alone: each case draws from a generator of its own.
"""
