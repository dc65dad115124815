"""Built-in: torch.nn.RNN. The same layer by torch, with the weights of any of the hand-written ones.

    h_t = tanh(W x_t + b + U h_(t-1) + c)
    the gradient comes with it

Teaches: before writing a loop, look whether the cell exists: nn.RNN, nn.GRU and nn.LSTM take time first by default;
    batch_first=True is for x of shape B x T x I and silently mixes the samples if it is not. The weights map one to
    one.
When not to use it: when the cell differs in any way; then rnn_unbind.py or rnn_bptt.py.
"""

import torch
from torch import Tensor, nn

TEACHES = "nn.RNN is the same cell: the weights map one to one"
BUILTIN = "torch.nn.RNN"
SECOND_ORDER = True
COMPILES = False


class BuiltinRNN(nn.Module):
    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.layer = nn.RNN(inputs, hidden)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)[0]

    @torch.no_grad()
    def take_weights(self, from_input: nn.Linear, from_state: nn.Linear) -> None:
        """Copies the weights of two Linear layers, as the hand-written RNNs have them."""
        self.layer.weight_ih_l0.copy_(from_input.weight)
        self.layer.weight_hh_l0.copy_(from_state.weight)
        self.layer.bias_ih_l0.copy_(from_input.bias)
        self.layer.bias_hh_l0.copy_(from_state.bias)


rnn = BuiltinRNN(3, 5).to(torch.float64)

gradsmith_inputs = {"rnn": lambda: (torch.randn(4, 2, 3, dtype=torch.float64, requires_grad=True),)}
