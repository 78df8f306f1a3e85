"""Streamed evaluation: a function over data larger than memory, chunk by chunk. See `luxgrad.stream`."""
