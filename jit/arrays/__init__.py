"""Array types: flat, nested, matrix, complex, quaternion, tensor; conversion and exchange."""
