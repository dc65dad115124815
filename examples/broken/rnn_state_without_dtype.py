# expect: state-no-device
import torch
import torch.nn as nn


class LeakyRNN(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.hidden = hidden
        self.project = nn.Linear(inputs, hidden)
        self.recur = nn.Linear(hidden, hidden, bias=False)

    def forward(self, x):
        h = torch.zeros(x.shape[1], self.hidden)
        states = []
        for p in self.project(x).unbind(0):
            h = 0.9 * h + 0.1 * torch.tanh(p + self.recur(h))
            states.append(h)
        return torch.stack(states)


rnn = LeakyRNN(3, 5)

gradsmith_inputs = {"rnn": lambda: (torch.randn(7, 2, 3, requires_grad=True),)}
