"""Launches of a function recorded once and replayed: the recorder and the replay, without knowledge of arrays."""
