"""stand-in"""
from dataclasses import dataclass
from gradsmith.lab.explore.variations.shapes import groups, Group, Dimension, resized as old
@dataclass(frozen=True)
class Size:
    value: int
    dims: tuple
    numbers: tuple = ()
    multiple_of: int = 1
    least: int = 1
def sizes(lab):
    return [Size(g.size, tuple((m.position,m.dim,1) for m in g.members), tuple((n,1) for n in g.numbers)) for g in groups(lab) if not g.multiples]
def resized(arguments, size, to, seed):
    return old(arguments, Group(size.value, tuple(Dimension(p,d) for p,d,_ in size.dims), tuple(n for n,_ in size.numbers)), to)
