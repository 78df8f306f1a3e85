"""Light sources, one file each."""
