"""The derivative: differences, the oracle, and where a wrong number stands."""
