"""Where inputs come from: given, declared, recorded, guessed (in this order)."""
