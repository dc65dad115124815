"""gradsmith: the workbench for people who write their own gradients in PyTorch."""
