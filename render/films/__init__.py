"""Films and reconstruction filters."""
