"""Ray intersection: accelerators behind one operation of the trace."""
