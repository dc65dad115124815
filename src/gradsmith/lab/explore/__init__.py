"""Where else to look: what forward does with its inputs, and other inputs it may be given."""
