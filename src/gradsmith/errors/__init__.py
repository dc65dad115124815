"""Errors that PyTorch raises around custom gradients, one file each. A new file here is all the registration there is.

The docstring is the page (a title, then Cause and Remedy). `WORDINGS` are the sentences as PyTorch writes them, with `...` for
what changes from case to case; the first sentence of a message is enough. `SEEN` are words that the traceback must show,
too, where the message alone could come from anywhere. `RULES` are the codes of the rules it belongs to. `BAD` raises the
error, `GOOD` is the same without it: tests run both, so that a release of PyTorch which words an error differently fails
there, by name. Nothing in this folder imports torch.
"""
