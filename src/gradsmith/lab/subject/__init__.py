"""What is examined: the subject, its arguments, copies of them, and the module it comes from."""
