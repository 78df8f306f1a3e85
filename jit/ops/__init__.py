"""One row per operation: meaning, lowering, derivative, sample intervals."""
