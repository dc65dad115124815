"""What an expression is: a tensor, an int, a shape, None ... from annotations, literals and torch's operations.

Says `unknown` rather than guess: rules treat a certain answer as a fact.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradsmith.source import knowledge as know
from gradsmith.source.annotations import (
    NONE,
    TENSOR,
    TENSOR_TYPES,
    UNKNOWN,
    Elements,
    Value,
    annotated,
    constant,
    either,
)

if TYPE_CHECKING:
    from gradsmith.source.flow import Binding
    from gradsmith.source.method import Method

_NUMBERS = frozenset(("int", "float", "number", "bool"))
# Their first argument is a tensor; that of torch.tensor, torch.zeros, torch.cat or torch.einsum is not.
_TAKES_TENSOR = (know.TENSOR_OPS - know.CREATION - know.RANDOM - know.FIRST_IS_NO_TENSOR) | {
    name for name in know.CREATION | know.RANDOM if name.endswith("_like")
}
_BUILTINS = {"int": "int", "len": "int", "float": "float", "bool": "bool", "str": "str", "abs": "", "round": "int"}


def infer(method: Method, node: ast.expr) -> Value | None:
    """The value of `node`; None while it is being worked out (a name that depends on itself round a loop)."""
    known = method._values
    if node in known:
        return known[node]
    known[node] = None
    known[node] = found = _infer(method, node)
    return found


def _infer(method: Method, node: ast.expr) -> Value:
    if isinstance(node, ast.Constant):
        return constant(node.value)
    if isinstance(node, ast.Name):
        return _name(method, node)
    if isinstance(node, ast.Call):
        return _call(method, node)
    if isinstance(node, ast.Attribute):
        return _attribute(method, node)
    if isinstance(node, ast.BinOp):
        return _binary(method, node)
    if isinstance(node, ast.UnaryOp):
        inner = _of(method, node.operand)
        if isinstance(node.op, ast.Not):
            return Value("bool", constant=True)
        return inner
    if isinstance(node, ast.Compare):
        return _compare(method, node)
    if isinstance(node, ast.Subscript):
        return _subscript(method, node)
    if isinstance(node, ast.IfExp):
        return either(_of(method, node.body), _of(method, node.orelse))
    if isinstance(node, ast.NamedExpr):
        return _of(method, node.value)
    if isinstance(node, ast.BoolOp):
        out = _of(method, node.values[0])
        for part in node.values[1:]:
            out = either(out, _of(method, part))
        return out
    if isinstance(node, ast.Tuple):
        return Value("tuple", constant=all(_of(method, e).constant for e in node.elts))
    if isinstance(node, (ast.List, ast.ListComp)):
        return Value("list")
    if isinstance(node, (ast.Dict, ast.DictComp)):
        return Value("dict")
    if isinstance(node, ast.JoinedStr):
        return Value("str", constant=True)
    return Value("callable") if isinstance(node, ast.Lambda) else UNKNOWN


def _of(method: Method, node: ast.expr) -> Value:
    return infer(method, node) or UNKNOWN


def _name(method: Method, node: ast.Name) -> Value:
    found: Value | None = None
    for binding in method.definitions(node):
        value = _bound(method, binding)
        if value is not None:
            found = value if found is None else either(found, value)
    return found or UNKNOWN


def _bound(method: Method, binding: Binding) -> Value | None:
    if binding.how == "param":
        return _param(method, binding)
    if binding.how == "assign" and binding.value is not None:
        annotation = getattr(binding.statement, "annotation", None)
        value = infer(method, binding.value)
        return annotated(annotation, method.dotted) if annotation is not None and value == UNKNOWN else value
    if binding.how == "augment" and binding.value is not None:
        if binding not in method._augmented_values:
            method._augmented_values[binding] = None
            method._augmented_values[binding] = _augmented(method, binding, binding.value)
        return method._augmented_values[binding]
    if binding.how in ("unpack", "loop") and binding.value is not None:
        return _part(method, binding)
    return UNKNOWN


def _augmented(method: Method, binding: Binding, operand: ast.expr) -> Value:
    out: Value | None = None
    for previous in binding.previous:
        before = _bound(method, previous)
        out = before if out is None else either(out, before or UNKNOWN)
    return _arithmetic(out or UNKNOWN, _of(method, operand), division=False)


def _param(method: Method, binding: Binding) -> Value:
    param = method.param(binding.name)
    if param is None:
        return UNKNOWN
    if param.role == "grad_output" and param.kind == "positional":
        return TENSOR if param.declared.kind in ("tensor", "unknown") else param.declared
    if param.role in ("inputs",):
        return Value("tuple")
    if param.kind == "vararg":
        return Value("tuple")
    if param.kind == "kwarg":
        return Value("dict")
    if param.declared.kind == "unknown":
        if param.name in used_as_dict(method):
            return Value("dict")
        if param.name in used_as_tensor(method):
            return Value("tensor", optional=param.declared.optional)
    return param.declared


_OF_DICTS = frozenset(("items", "keys", "get", "setdefault", "popitem"))


def used_as_dict(method: Method) -> frozenset[str]:
    """Names of which a text is asked as a key, or an entry as of a dict: `state["grad"] = x`, `state.items()`."""
    cached: frozenset[str] | None = method.__dict__.get("_dicts")
    if cached is None:
        cached = method.__dict__["_dicts"] = frozenset(
            node.value.id
            for node in method.nodes
            if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.value, ast.Name)
            if (node.attr in _OF_DICTS if isinstance(node, ast.Attribute) else _is_text(node.slice))
        )
    return cached


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def used_as_tensor(method: Method) -> frozenset[str]:
    """Parameters that the body treats as only tensors can be treated."""
    cached: frozenset[str] | None = method.__dict__.get("_tensors")
    if cached is not None:
        return cached
    method.__dict__["_tensors"] = frozenset()
    names: set[str] = set()

    def note(node: ast.AST) -> None:
        if isinstance(node, ast.Name) and any(b.how == "param" for b in method.definitions(node)):
            names.add(node.id)

    for node in method.of(ast.Attribute):
        if node.attr in know.TENSOR_ONLY:
            note(node.value)
    for call in method.of(ast.Call):
        op = know.bare_op(method.dotted(call.func))
        if op in _TAKES_TENSOR and call.args:
            note(call.args[0])
    for save in method.context.saves:
        for expression in save.exprs:
            note(expression)
    method.__dict__["_tensors"] = frozenset(names)
    return frozenset(names)


def _part(method: Method, binding: Binding) -> Value:
    """One element of something taken apart by unpacking or by a loop."""
    whole = binding.value
    if whole is None:
        return UNKNOWN
    if method.context.is_saved_tensors(whole):
        return TENSOR._replace(optional=True)
    call = method.resolve(whole)
    if isinstance(call, ast.Call):
        op = method.op(call)
        if op in know.TUPLES or op in know.TUPLES_WITH_DIM:
            if op in know.WITH_INDICES and binding.index == 1:
                return Value("tensor", "integer", constant=True)
            return TENSOR
        if binding.how == "loop" and isinstance(call.func, ast.Name) and call.func.id == "range":
            return Value("int", constant=True)
    value = _of(method, whole)
    if value.kind == "shape":
        return Value("int", constant=True)
    if _is_grad_outputs(method, whole):
        return TENSOR._replace(optional=True)
    return TENSOR if value.is_tensor and binding.how in ("loop", "unpack") else UNKNOWN


def _is_grad_outputs(method: Method, node: ast.expr) -> bool:
    """`*grad_outputs` of backward, as a whole."""
    param = method.param_of(node)
    return param is not None and param.kind == "vararg" and param.role == "grad_output"


def _attribute(method: Method, node: ast.Attribute) -> Value:
    dotted = method.dotted(node) or ""
    if dotted.startswith("torch."):
        last = dotted.rpartition(".")[2]
        if last in know.FLOAT_DTYPES or last in know.INT_DTYPES or last == "bool":
            return Value("dtype", constant=True)
    name = node.attr
    if name in know.SHAPE_ATTRIBUTES:
        return Value("shape", constant=True)
    if name in ("dtype", "device"):
        return Value("dtype" if name == "dtype" else "device", constant=True)
    if name in know.FLAG_ATTRIBUTES:
        return Value("bool", constant=True)
    inner = _of(method, node.value)
    if inner.is_tensor:
        if name in know.VIEW_ATTRIBUTES:
            return inner._replace(optional=False)
        if name in know.INT_ATTRIBUTES:
            return Value("int", constant=True)
    return UNKNOWN


def _call(method: Method, node: ast.Call) -> Value:
    if isinstance(node.func, ast.Name) and node.func.id in _BUILTINS and method.is_free(node.func):
        kind = _BUILTINS[node.func.id]
        if kind:
            return Value(kind, constant=True)  # type: ignore[arg-type]
        return _of(method, node.args[0]) if node.args else UNKNOWN
    if isinstance(node.func, ast.Name) and node.func.id in ("tuple", "list", "dict"):
        return Value(node.func.id)  # type: ignore[arg-type]
    op = method.op(node)
    if op is None:
        dotted = method.dotted(node.func) or ""
        if dotted.startswith(("numpy.", "math.")):
            return Value("ndarray" if dotted.startswith("numpy.") else "float", constant=dotted.startswith("math."))
        return (
            Value("module") if dotted.startswith("torch.nn.") and dotted.rpartition(".")[2][:1].isupper() else UNKNOWN
        )
    receiver = _receiver(method, node)
    if op in know.TO_NUMBER:
        return Value("number", constant=True)
    if op in know.TO_INT:
        return Value("int", constant=True)
    if op in know.TO_FLAG:
        return Value("bool", constant=True)
    if op in know.TO_SHAPE:
        return Value("int" if op in ("size", "stride") and (node.args or node.keywords) else "shape", constant=True)
    if op == "tolist":
        return Value("list")
    if op == "numpy":
        return Value("ndarray")
    if op in know.TUPLES or (op in know.TUPLES_WITH_DIM and _has_dim(node, receiver is not None)):
        # `solver.lu(a)` of who knows what: other things than tensors have methods of these names.
        known = receiver is None or receiver.is_tensor
        return Value("tuple", holds_tensors=True) if known else UNKNOWN
    if op in know.TENSOR_OPS or know.is_inplace_name(op):
        return Value("tensor", _elements(op, node, receiver, method), constant=_is_constant(method, op, node, receiver))
    return UNKNOWN


def _receiver(method: Method, node: ast.Call) -> Value | None:
    """The tensor a method is called on; None for functions of the torch module."""
    if know.bare_op(method.dotted(node.func)) is not None:
        return None
    return _of(method, node.func.value) if isinstance(node.func, ast.Attribute) else None


def _has_dim(node: ast.Call, is_method: bool) -> bool:
    position = 0 if is_method else 1
    if any(k.arg in ("dim", "axis") for k in node.keywords):
        return True
    return len(node.args) > position and isinstance(node.args[position], (ast.Constant, ast.UnaryOp))


def _elements(op: str, node: ast.Call, receiver: Value | None, method: Method) -> Elements:
    if op in know.TO_BOOL:
        return "bool"
    if op in know.TO_INTEGER:
        return "integer"
    if op in ("float", "double", "half", "bfloat16"):
        return "floating"
    dtype = next((k.value for k in node.keywords if k.arg == "dtype"), None)
    if op in ("to", "type") and node.args:
        dtype = node.args[0]
    named = (method.dotted(dtype) or "").rpartition(".")[2] if dtype is not None else ""
    if named in know.INT_DTYPES:
        return "integer"
    if named in know.FLOAT_DTYPES:
        return "floating"
    if named == "bool":
        return "bool"
    if op == "type" and named in TENSOR_TYPES:
        return TENSOR_TYPES[named]
    if dtype is None and op == "arange" and all(_of(method, a).kind == "int" for a in node.args):
        return "integer"
    if op in ("to", "type") and not (receiver is not None and _is_device(method, node)):
        return ""
    first = receiver or (_of(method, node.args[0]) if node.args else UNKNOWN)
    keeps = (
        op in know.VIEWS or op in know.MAYBE_SAME or op in know.SHUFFLES or op in ("clone", "amax", "amin", "cumsum")
    )
    return first.elements if keeps and first.is_tensor else ""


def _is_device(method: Method, node: ast.Call) -> bool:
    """`x.to(y.device)`: only the place changes."""
    given = method.resolve(node.args[0]) if len(node.args) == 1 and not node.keywords else None
    return isinstance(given, ast.Attribute) and given.attr == "device"


def _is_constant(method: Method, op: str, node: ast.Call, receiver: Value | None) -> bool:
    if op in ("tensor", "as_tensor", "asarray", "full", "scalar_tensor", "new_tensor", "new_full", "full_like"):
        return all(_of(method, a).constant for a in node.args[-1:])
    if op in know.TO_BOOL or op in know.TO_INTEGER or op in know.STEPS or op in know.CREATION:
        return True
    if op in know.RANDOM and "dropout" not in op and op != "rrelu":
        return True
    operands = [a for a in (*node.args, *(k.value for k in node.keywords)) if not isinstance(a, ast.Starred)]
    if op == "where":
        operands = operands[-2:]
    parts = [_of(method, a) for a in operands]
    if receiver is not None:
        parts.append(receiver)
    return bool(parts) and all(p.constant for p in parts)


def _binary(method: Method, node: ast.BinOp) -> Value:
    left, right = _of(method, node.left), _of(method, node.right)
    if isinstance(node.op, ast.MatMult):
        if "ndarray" in (left.kind, right.kind):
            return Value("ndarray")
        return Value("tensor", constant=left.constant and right.constant)
    if isinstance(node.op, (ast.BitAnd, ast.BitOr)) and "bool" in (left.elements, right.elements):
        return Value("tensor", "bool", constant=True)
    return _arithmetic(left, right, division=isinstance(node.op, ast.Div))


def _arithmetic(left: Value, right: Value, division: bool) -> Value:
    both = left.constant and right.constant
    if left.is_tensor or right.is_tensor:
        parts = [v for v in (left, right) if v.is_tensor]
        same = all(p.elements == parts[0].elements for p in parts)
        scalar_int = all(v.is_tensor or v.kind in ("int", "bool") for v in (left, right))
        elements = parts[0].elements if same and scalar_int and not division else ""
        return Value("tensor", "integer" if elements == "bool" else elements, constant=both)
    if left.kind in _NUMBERS and right.kind in _NUMBERS:
        if left.kind == right.kind == "int":
            return Value("float" if division else "int", constant=both)
        return Value("float" if "float" in (left.kind, right.kind) or division else "number", constant=both)
    if left.kind == right.kind and left.kind in ("str", "tuple", "list", "shape", "ndarray"):
        return left
    return Value(constant=both)


def _compare(method: Method, node: ast.Compare) -> Value:
    if any(isinstance(o, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for o in node.ops):
        return Value("bool", constant=True)
    parts = [_of(method, node.left), *(_of(method, c) for c in node.comparators)]
    if any(p.is_tensor for p in parts):
        return Value("tensor", "bool", constant=True)
    if all(p.kind != "unknown" for p in parts):
        return Value("bool", constant=True)
    return Value(constant=True)


def _subscript(method: Method, node: ast.Subscript) -> Value:
    if method.context.is_saved_tensors(node.value) and not isinstance(node.slice, ast.Slice):
        return TENSOR._replace(optional=True)
    if method.context.is_needs(node.value):
        return Value("bool", constant=True)
    inner = _of(method, node.value)
    if inner.is_tensor:
        return inner._replace(optional=False)
    if inner.kind == "shape":
        return inner if isinstance(node.slice, ast.Slice) else Value("int", constant=True)
    if _is_grad_outputs(method, node.value) and not isinstance(node.slice, ast.Slice):
        return TENSOR._replace(optional=True)
    return NONE if inner.kind == "none" else UNKNOWN
