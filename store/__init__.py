"""Implements the services' data access ports, on PostgreSQL with asyncpg and in memory."""
