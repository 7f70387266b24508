"""PostgreSQL through asyncpg, and the same ports over dictionaries."""
