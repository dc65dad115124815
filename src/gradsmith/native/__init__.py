"""C kernels for the recurrent engine and the ops: emitted, compiled once, kept in the user's cache, called by ctypes."""
