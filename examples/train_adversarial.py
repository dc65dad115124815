"""Two domains, labels in one of them only: features that hide the domain, by gs.ops.GradReverse. A few seconds.

    python examples/train_adversarial.py        # saves train_adversarial.png (needs gradsmith[plots])

The second domain is the first, shifted along a direction that in the first domain helps to tell the classes apart. A net
trained on the first alone relies on it; one that is also rewarded for hiding the domain does not.
"""

import math
import sys

import torch
from plotting import save_plot
from torch import nn
from torch.nn import functional as F

import gradsmith as gs

ROUNDS = 300


def points(count: int, shifted: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Classes differ in both coordinates of the first domain; in the second, the second coordinate is a constant 4."""
    labels = torch.randint(0, 2, (count,))
    side = 2.0 * labels - 1
    x = torch.stack([side, side * 2], dim=1) + 0.5 * torch.randn(count, 2)
    if shifted:
        x[:, 1] = 4 + 0.5 * torch.randn(count)
    return x, labels


class Net(nn.Module):
    def __init__(self, adversarial: bool) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 8))
        self.classes, self.adversarial = nn.Linear(8, 2), adversarial
        # The usual schedule: from 0 to 1, so that the domain is learned before it is hidden.
        self.reverse = gs.ops.GradReverse(lambda step: 2 / (1 + math.exp(-10 * step / ROUNDS)) - 1)
        self.domain = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))

    def loss(self, x: torch.Tensor, labels: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        own = self.features(x)
        loss = F.cross_entropy(self.classes(own), labels)
        if not self.adversarial:
            return loss
        both = self.reverse(torch.cat([own, self.features(other)]))
        domains = torch.arange(2).repeat_interleave(len(x))
        return loss + F.cross_entropy(self.domain(both), domains)


def train(adversarial: bool, rounds: int = ROUNDS) -> list[float]:
    """Accuracy in the second domain, of which no label was seen, after every tenth round."""
    torch.manual_seed(0)
    net = Net(adversarial)
    optimizer = torch.optim.Adam(net.parameters(), 5e-3)
    # Shorter steps towards the end: two losses that pull against each other do not come to rest by themselves.
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, rounds)
    accuracy = []
    for number in range(rounds):
        x, labels = points(64, shifted=False)
        loss = net.loss(x, labels, points(64, shifted=True)[0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        net.reverse.step()
        if number % 10 == 9:
            x, labels = points(512, shifted=True)
            with torch.no_grad():
                accuracy.append((net.classes(net.features(x)).argmax(1) == labels).float().mean().item())
    return accuracy


if __name__ == "__main__":
    curves = {"first domain only": train(False), "with grad_reverse": train(True)}
    for name, found in curves.items():
        print(f"{name}: {sum(found[-5:]) / 5:.3f} right in the second domain")
    save_plot(sys.argv, "train_adversarial.png", curves, "ten rounds", "accuracy, second domain")
