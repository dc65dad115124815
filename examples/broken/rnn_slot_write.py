# expect: slot-write
import torch
import torch.nn as nn


class LeakyRNN(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.project = nn.Linear(inputs, hidden)
        self.recur = nn.Linear(hidden, hidden, bias=False)

    def forward(self, x):
        h = x.new_zeros(x.shape[1], self.recur.out_features)
        out = x.new_zeros(x.shape[0], x.shape[1], self.recur.out_features)
        for t, p in enumerate(self.project(x).unbind(0)):
            h = 0.9 * h + 0.1 * torch.tanh(p + self.recur(h))
            out[t] = h
        return out


rnn = LeakyRNN(3, 5).double()

gradsmith_inputs = {"rnn": lambda: (torch.randn(7, 2, 3, dtype=torch.float64, requires_grad=True),)}
