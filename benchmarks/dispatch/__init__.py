"""How many durable dispatches a second does a whole node answer, against the same server doing nothing?"""
