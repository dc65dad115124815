"""Whose memory a value is, and who writes into it: aliases, views and in-place operations."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Literal, NamedTuple

from gradsmith.source import knowledge as know
from gradsmith.source.behind import made_of
from gradsmith.source.guards import contradicts

if TYPE_CHECKING:
    from gradsmith.source.flow import Binding
    from gradsmith.source.method import Method

Owner = Literal["input", "grad_output", "saved", "output", "ctx"]
NOTHING: frozenset[Source] = frozenset()


class Source(NamedTuple):
    """Memory that belongs to somebody else: an input, a grad_output, a saved tensor, an output, an attribute of ctx.

    `same_object` says that the expression is that very tensor, not a view of it; `certain` is False where it may be a
    copy instead (`g.contiguous()`, `g.to(...)`, or on one of several paths only).
    """

    owner: Owner
    name: str
    position: int | None = None
    same_object: bool = True
    certain: bool = True


class Write(NamedTuple):
    """One in-place operation. `target` is the expression written to, `how` the way: "mul_", "+=", "[]=", "out=" ..."""

    node: ast.AST
    target: ast.expr
    how: str
    statement: ast.stmt


def not_in_place(how: str) -> str:
    """What to write instead of an in-place operation, to follow other advice: `.mul_` -> `.mul`.

    >>> not_in_place("mul_"), not_in_place("[]=")
    (', or use `mul`, which returns a new tensor', '')
    """
    plain = how.removesuffix("_")
    return f", or use `{plain}`, which returns a new tensor" if plain != how and plain.isidentifier() else ""


def sources(method: Method, node: ast.expr) -> frozenset[Source]:
    known = method._sources
    if node in known:
        return known[node]
    known[node] = NOTHING  # while it is worked out: a name that depends on itself adds nothing
    known[node] = found = _sources(method, node)
    return found


def sources_at(method: Method, node: ast.expr, place: ast.AST) -> frozenset[Source]:
    """The sources that an expression may have where `place` runs: `x if flag else y` is y under `if not flag`."""
    found = sources(method, node)
    if all(source.certain for source in found):
        return found

    def into(part: ast.AST) -> list[ast.AST]:
        values = _aliases(method, part)
        return [value for value in values if not contradicts(method, value, place)]

    names = {n.id for n in made_of(method, [node], into) if isinstance(n, ast.Name)}
    return frozenset(s for s in found if s.certain or s.name in names or not s.name.isidentifier())


def _aliases(method: Method, node: ast.AST) -> list[ast.expr]:
    """The expressions whose memory an expression may be."""
    if isinstance(node, ast.Name):
        bindings = [p for b in method.definitions(node) for p in (b, *b.previous)]
        return [b.value for b in bindings if b.value is not None and b.how != "augment"]
    if isinstance(node, (ast.Attribute, ast.Subscript, ast.NamedExpr, ast.Starred)):
        return [node.value]
    if isinstance(node, ast.Call):
        return [_operand(method, node)] if sources(method, node) else []
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.BoolOp):
        return node.values
    return node.elts if isinstance(node, (ast.Tuple, ast.List)) else []


def _sources(method: Method, node: ast.expr) -> frozenset[Source]:
    if isinstance(node, ast.Name):
        bindings = method.definitions(node)
        parts = [_bound(method, b) for b in bindings]
        return _merged(parts)
    if isinstance(node, ast.Attribute):
        if method.context.is_ctx(node.value):
            return frozenset((Source("ctx", node.attr),))
        return _viewed(sources(method, node.value)) if node.attr in know.VIEW_ATTRIBUTES else NOTHING
    if isinstance(node, ast.Subscript):
        return _subscript(method, node)
    if isinstance(node, ast.Call):
        return _call(method, node)
    if isinstance(node, ast.IfExp):
        return _merged([sources(method, node.body), sources(method, node.orelse)])
    if isinstance(node, ast.BoolOp):
        return _merged([sources(method, v) for v in node.values])
    return sources(method, node.value) if isinstance(node, ast.NamedExpr) else NOTHING


def _merged(parts: list[frozenset[Source]]) -> frozenset[Source]:
    """What may hold on some path; certain only if every path agrees."""
    if len(parts) == 1:
        return parts[0]
    out: set[Source] = set()
    for part in parts:
        for source in part:
            everywhere = all(any(_same(source, s) and s.certain for s in other) for other in parts)
            out.add(source._replace(certain=source.certain and everywhere))
    return frozenset(out)


def _same(a: Source, b: Source) -> bool:
    return (a.owner, a.name, a.position) == (b.owner, b.name, b.position)


def _viewed(found: frozenset[Source], certain: bool = True) -> frozenset[Source]:
    return frozenset(
        s._replace(same_object=not certain and s.same_object, certain=s.certain and certain) for s in found
    )


def _bound(method: Method, binding: Binding) -> frozenset[Source]:
    if binding.how == "param":
        param = method.param(binding.name)
        if param is None or param.kind in ("vararg", "kwarg"):
            return NOTHING
        if param.role in ("input", "grad_output", "output"):
            return frozenset((Source(param.role, param.name, param.index),))
        return NOTHING
    if binding.how == "assign" and binding.value is not None:
        return sources(method, binding.value)
    if binding.how == "augment":
        if binding not in method._augmented_sources:
            method._augmented_sources[binding] = NOTHING
            method._augmented_sources[binding] = _merged([_bound(method, p) for p in binding.previous])
        return method._augmented_sources[binding]
    if binding.how in ("unpack", "loop") and binding.value is not None:
        return element(method, binding.value, binding.index, binding.name)
    return NOTHING


def element(method: Method, whole: ast.expr, index: int | None, name: str) -> frozenset[Source]:
    """The source of one element of `ctx.saved_tensors`, of `inputs`, of `*grad_outputs`, of `x.chunk(2)`."""
    if method.context.is_saved_tensors(whole):
        return frozenset((Source("saved", name, index),))
    whole = method.resolve(whole)
    if isinstance(whole, ast.Subscript) and isinstance(whole.slice, ast.Slice):
        start = slice_start(whole.slice)
        if start is not None and index is not None:
            return element(method, whole.value, start + index, name)
    if isinstance(whole, ast.Name):
        param = method.param_of(whole)
        if param is not None and (param.kind == "vararg" or param.role in ("inputs", "output")):
            position = index if param.role != "grad_output" or index is None else param.index + index
            owner: Owner = "input" if param.role == "inputs" else param.role  # type: ignore[assignment]
            return frozenset((Source(owner, name, position),)) if param.role != "other" else NOTHING
    if (
        isinstance(whole, ast.Subscript)
        and isinstance(whole.slice, ast.Slice)
        and method.context.is_saved_tensors(whole.value)
    ):
        return frozenset((Source("saved", name),))
    if isinstance(whole, ast.Call) and method.op(whole) in know.TUPLES & know.VIEWS:
        return _viewed(sources(method, _operand(method, whole)))
    return NOTHING


def slice_start(index: ast.Slice) -> int | None:
    """Where `[2:]` or `[:6]` begins; None where that is not certain, or elements are left out."""
    if index.step is not None:
        return None
    if index.lower is None:
        return 0
    start = index.lower.value if isinstance(index.lower, ast.Constant) else None
    return start if isinstance(start, int) and start >= 0 else None


def _subscript(method: Method, node: ast.Subscript) -> frozenset[Source]:
    index = node.slice.value if isinstance(node.slice, ast.Constant) else None
    position = index if isinstance(index, int) and not isinstance(index, bool) else None
    taken = element(method, node.value, position, ast.unparse(node))
    if taken:
        return taken
    inner = sources(method, node.value)
    return _viewed(inner, certain=_is_basic(node.slice)) if inner and not _is_copy(method, node.slice) else NOTHING


def _is_basic(index: ast.expr) -> bool:
    """Slices, integers, None and `...`: the result is a view."""
    if isinstance(index, ast.Tuple):
        return all(_is_basic(e) for e in index.elts)
    if isinstance(index, ast.UnaryOp):
        return _is_basic(index.operand)
    return isinstance(index, (ast.Slice, ast.Constant))


def _is_copy(method: Method, index: ast.expr) -> bool:
    """Indexing with a tensor or a list copies."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(
        isinstance(p, (ast.List, ast.Compare)) or (not isinstance(p, ast.Slice) and method.value(p).is_tensor)
        for p in parts
    )


def _operand(method: Method, node: ast.Call) -> ast.expr:
    """What an operation works on: the receiver of a method, the first argument of a function."""
    if know.bare_op(method.dotted(node.func)) is None and isinstance(node.func, ast.Attribute):
        return node.func.value
    return node.args[0] if node.args else node.func


def _call(method: Method, node: ast.Call) -> frozenset[Source]:
    op = method.op(node)
    if op is None:
        wraps = (method.dotted(node.func) or "") in _ARRAY_OF and len(node.args) == 1 and not node.keywords
        return _viewed(sources(method, node.args[0])) if wraps else NOTHING
    operand = _operand(method, node)
    if op in know.SAME or know.is_inplace_name(op) or op == "detach_" or _flag(node, "inplace"):
        return sources(method, operand)
    if op in know.VIEWS and op not in know.TUPLES:
        return _viewed(sources(method, operand))
    if op in know.MAYBE_SAME:
        copy = _flag(node, "copy")
        return NOTHING if copy else _viewed(sources(method, operand), certain=False)
    return NOTHING


def _flag(node: ast.Call, name: str) -> bool:
    return any(k.arg == name and isinstance(k.value, ast.Constant) and k.value.value is True for k in node.keywords)


def read_writes(method: Method) -> list[Write]:
    """In source order."""
    found: list[Write] = []
    for node in method.nodes:
        target, how = _written(method, node)
        if target is not None and not _is_container(method, target):
            found.append(Write(node, target, how, method.statement(node)))
    return sorted(found, key=lambda w: (w.statement.lineno, w.statement.col_offset))


def _written(method: Method, node: ast.AST) -> tuple[ast.expr | None, str]:
    if isinstance(node, ast.AugAssign):
        how = f"{_SYMBOLS.get(type(node.op), '?')}="
        if isinstance(node.target, ast.Name):
            before = [b for b in method.flow.bindings if b.node is node.target]
            read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
            method.flow.at[read] = tuple(p for b in before for p in b.previous)
            method.file.parents[read] = node
            tensor = method.value(read).is_tensor or _is_asked_like_one(method, read) or _is_shared_array(method, read)
            return (read, how) if tensor else (None, "")
        if isinstance(node.target, ast.Subscript):
            return node.target.value, "[]="
        return None, ""
    if isinstance(node, ast.Assign):
        subscripts = [t for t in node.targets if isinstance(t, ast.Subscript)]
        return (subscripts[0].value, "[]=") if subscripts else (None, "")
    if not isinstance(node, ast.Call):
        return None, ""
    if (method.dotted(node.func) or "") in _COLLECTIVES:
        return next(iter([*node.args, *(k.value for k in node.keywords if k.arg == "tensor")]), None), "all_reduce"
    out = next((k.value for k in node.keywords if k.arg == "out"), None)
    if isinstance(node.func, ast.Attribute):
        name = node.func.attr
        if know.bare_op(method.dotted(node.func)) is not None:
            if know.is_inplace_name(name) and node.args:
                return node.args[0], name
        elif (know.is_inplace_name(name) or name in know.INPLACE_DUNDERS) and method.dotted(
            node.func.value
        ) != "torch.nn.init":
            return node.func.value, name
        elif name.endswith("_") and (method.dotted(node.func) or "").startswith("torch.nn.init.") and node.args:
            return node.args[0], name
    numpy = (method.dotted(node.func) or "").startswith("numpy.")
    if out is not None and (numpy or method.op(node) is not None):
        return out, "out="
    if numpy and node.args and (method.dotted(node.func) or "") in _NUMPY_WRITERS:
        return node.args[0], ast.unparse(node.func)
    func = node.func
    if isinstance(func, ast.Attribute) and func.attr in _ARRAY_WRITERS and _is_shared_array(method, func.value):
        return func.value, func.attr
    if _flag(node, "inplace") and node.args and method.op(node) is not None:
        return node.args[0], "inplace=True"
    return None, ""


def _is_asked_like_one(method: Method, read: ast.Name) -> bool:
    """An input of which a dimension, a maximum or a device is asked elsewhere is no number: `x -= 1` writes into it."""
    param = method.param_of(read)
    return (
        param is not None
        and param.role == "input"
        and param.declared.kind in ("unknown", "tensor")
        and any(
            isinstance(n, ast.Attribute)
            and (n.attr in know.METHODS or n.attr in know.SHAPE_ATTRIBUTES)
            and isinstance(n.value, ast.Name)
            and n.value.id == read.id
            for n in method.nodes
        )
    )


def _is_container(method: Method, target: ast.expr) -> bool:
    """`grads[i] = g` on a list, a dict or a tuple writes into no tensor."""
    kind = method.value(target).kind
    if kind == "ndarray":
        return not _is_shared_array(method, target)
    return kind in ("list", "dict", "tuple", "str", "shape")


def _is_shared_array(method: Method, node: ast.expr) -> bool:
    """`x.numpy()` is x's own memory, and a write into it is one that no version counter sees."""
    return method.value(node).kind == "ndarray" and bool(sources(method, node))


# They make an array of a tensor's own memory; with a dtype or an order they may copy.
_ARRAY_OF = frozenset(("numpy.asarray", "numpy.asanyarray", "numpy.ascontiguousarray"))
_NUMPY_WRITERS = frozenset(("numpy.copyto", "numpy.put", "numpy.place", "numpy.putmask", "numpy.fill_diagonal"))
_ARRAY_WRITERS = frozenset(("fill", "sort", "partition", "itemset", "put"))
# What the other processes have is put into the tensor itself.
_COLLECTIVES = frozenset(("torch.distributed.all_reduce", "torch.distributed.distributed_c10d.all_reduce"))
_SYMBOLS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
