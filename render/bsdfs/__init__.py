"""Surface scattering models, one file each."""
