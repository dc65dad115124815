"""Second order on torch.func: hvp, hessian, jacobian, and whether custom Functions on the way support it."""
