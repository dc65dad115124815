"""Where inputs come from: declared by the user (later also recorded and guessed)."""
