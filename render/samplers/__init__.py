"""Sample generators, one file each."""
