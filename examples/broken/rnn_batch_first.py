# expect: batch-first-mismatch
"""Encode a sequence, keep the last state."""
import torch
import torch.nn as nn


class Encoder(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.rnn = nn.RNN(inputs, hidden, batch_first=True)

    def forward(self, x):
        # x: (time, batch, features)
        output, _ = self.rnn(x)
        return output[-1]


encoder = Encoder(3, 5).double()

gradsmith_inputs = {"encoder": lambda: (torch.randn(7, 2, 3, dtype=torch.float64, requires_grad=True),)}
