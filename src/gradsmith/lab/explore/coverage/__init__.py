"""Which lines ran, and which sides of its conditions a subject took: what of it was never examined."""
