"""Passes over the trace: schedule, value numbering, folding, verification."""
