"""A character model with layer-normalised LSTM and a chunked loss learns a short text by heart. A few seconds.

python examples/train_characters.py         # saves train_characters.png (needs gradsmith[plots])
"""

import math
import sys

import torch
from plotting import save_plot
from torch import nn

import gradsmith as gs
from gradsmith.recurrent import LayerNormLSTMCell

TEXT = "the gradient that trains, raises nothing, and is wrong, is the one to look for. " * 8
LETTERS = sorted(set(TEXT))
LENGTH, BATCH, HIDDEN = 32, 16, 64


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(LETTERS), 16)
        self.memory = gs.Recurrent(LayerNormLSTMCell(16, HIDDEN))
        self.head = gs.ops.LinearCrossEntropy(HIDDEN, len(LETTERS))

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        """The mean loss of each next letter; letters is (time, batch)."""
        hidden, _ = self.memory(self.embed(letters[:-1]))
        return self.head(hidden, letters[1:])


def train(rounds: int = 120) -> list[float]:
    """Bits per letter after every round."""
    torch.manual_seed(0)
    text = torch.tensor([LETTERS.index(letter) for letter in TEXT])
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    bits = []
    for _ in range(rounds):
        starts = torch.randint(0, len(text) - LENGTH - 1, (BATCH,))
        letters = torch.stack([text[s : s + LENGTH + 1] for s in starts], dim=1)
        loss = net(letters)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        bits.append(loss.item() / math.log(2))
    return bits


if __name__ == "__main__":
    found = train()
    print(f"bits per letter: {found[0]:.2f} at first, {found[-1]:.2f} after training")
    save_plot(sys.argv, "train_characters.png", {"training": found}, "round", "bits per letter")
