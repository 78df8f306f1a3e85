"""Memory: caching pool, planner, arena, streaming, reports."""
