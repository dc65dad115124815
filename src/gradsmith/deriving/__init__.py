"""From forward to backward: a plain PyTorch forward becomes the source of a Function with its derivative written out."""
