"""A spiking network learns to tell two rhythms apart: LIF neurons, a surrogate gradient, gs.Recurrent. A few seconds.

python examples/train_spiking.py            # saves train_spiking.png (needs gradsmith[plots])
"""

import sys

import torch
from plotting import save_plot
from torch import nn

import gradsmith as gs
from gradsmith.recurrent import LIFCell

STEPS, INPUTS, HIDDEN = 40, 8, 32


def rhythms(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Spike trains (time, count, inputs): class 0 beats every 4 steps, class 1 every 6, with noise and a random start."""
    labels = torch.randint(0, 2, (count,))
    period, start = torch.where(labels == 0, 4, 6), torch.randint(0, 6, (count,))
    time = torch.arange(STEPS).unsqueeze(1)
    beat = ((time + start) % period == 0).float().unsqueeze(2).expand(STEPS, count, INPUTS)
    noise = (torch.rand(STEPS, count, INPUTS) < 0.05).float()
    return (beat + noise).clamp(max=1), labels


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.spikes = gs.Recurrent(LIFCell(INPUTS, HIDDEN))
        self.read = nn.Linear(HIDDEN, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spikes, _ = self.spikes(x)
        return self.read(spikes.mean(0))


def train(rounds: int = 150) -> list[float]:
    """Accuracy on fresh data after every tenth round."""
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    accuracy = []
    for number in range(rounds):
        x, labels = rhythms(64)
        loss = nn.functional.cross_entropy(net(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if number % 10 == 9:
            x, labels = rhythms(256)
            with torch.no_grad():
                accuracy.append((net(x).argmax(1) == labels).float().mean().item())
    return accuracy


if __name__ == "__main__":
    found = train()
    print(f"accuracy after training: {found[-1]:.3f}")
    save_plot(sys.argv, "train_spiking.png", {"accuracy": found}, "ten rounds", "accuracy on fresh data")
