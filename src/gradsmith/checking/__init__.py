"""Is the gradient right? From a subject and its inputs to a report: run the probes, weigh what they find, decide."""
