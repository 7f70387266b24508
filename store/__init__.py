"""Data access through asyncpg on PostgreSQL, and the same ports in memory."""
