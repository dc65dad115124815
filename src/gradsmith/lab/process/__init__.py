"""Around a run: processes, state, devices, and what is known about versions of torch."""
