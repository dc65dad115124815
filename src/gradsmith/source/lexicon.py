"""What a name usually means: the one table of the names that people give to things in code on tensors.

Whoever asks whether a name is that of an index, a mask, a tolerance or a function asks here. A role is a habit, not a
proof: it chooses what to try first, never what is true. Nothing here names a library, and nothing imports torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache


@dataclass(frozen=True)
class Role:
    """Names with one meaning: a pattern for the whole name, or (`part`) for something in it."""

    pattern: str
    part: bool = False


def _part(pattern: str) -> Role:
    return Role(pattern, part=True)


ROLES: dict[str, Role] = {
    # Tensors that are trained, or carried along. Recurrent cells stack their gates.
    "input weight": Role(r"w(eights?)?_?(ih|i|x|xh)"),
    "hidden weight": Role(r"w(eights?)?_?(hh|h)|u"),
    "cell bias": Role(r"b(ias)?_?(ih|hh|h|i)"),
    "weight": Role(r"weights?|w|kernel|filters?|[wu]_?\w{1,2}|\w+_(weight|w|kernel)"),
    "bias": Role(r"bias(es)?|\w+_bias"),
    "trained": Role(r"weights?|bias|gamma|beta"),
    "frozen": _part(r"quant|scale|zero|absmax|packed|bit|fp8|float8|int8|frozen|lora|offload|nf4"),
    "initial value": Role(r"init(ial)?\w*"),
    "state": Role(r"h(x|idden|0)?|c(x|0)?|state|hidden_state|cell|\w*hidden\w*"),
    "second operand": Role(r"x2|other|y|b|right|rhs|keys?|values?|k|v"),
    # What has no derivative.
    "integer": _part(
        r"(^|_)(idx|inds?|index|indexes|indices|ids?|offsets?|lens?|lengths?|seqlens?|counts?|num|nums|n|order|perm"
        r"|permutation|mask|masks|labels?|targets?|argmax|argmin|rows?|cols?|starts?|ends?|expert|experts|segments?"
        r"|batch_sizes)($|_)"
    ),
    "mask": Role(r"masks?|\w+_mask|mask_\w+"),
    "length": Role(r"(seq_?)?len(gth)?s?|lengths"),
    "offsets": Role(r"offsets|ind_?ptr|(crow|row|col)_?(ptr|indices)|cu(m|mulative)?_?(seq)?_?len(gth)?s?\w*"),
    "class": Role(r"labels?|targets?|\w+_(labels?|targets?|ids?)|ids?|class(es)?"),
    "zero-one label": _part(r"target|label|truth|(^|_)gt(_|$)|one_?hot|mask|y_true|indicator"),
    "index": Role(r"ind(ex|ices|s)?|idxs?|perm\w*|(ind|idx|index|indices)_\w+|\w+_(idx|index|indices|inds?)"),
    "index with a meaning": _part(
        r"offset|len|ptr|seq|bound|split|size|start|end|shape|num|count|perm|order|rank|class|label"
    ),
    "place in a matrix": Role(r"rows?|cols?|columns?|senders?|receivers?"),
    "ignored class": Role(r"\w*ignore_index"),
    "padding index": Role(r"pad(ding)?_(idx|index)"),
    # Single numbers beside the data.
    "positive number": Role(
        r"lengthscales?|length_scales?|sigmas?|stds?|vars?|variances?|taus?|temperatures?|concentrations?|rates?|scales?"
    ),
    "number": Role(
        r"alphas?|betas?|gammas?|lambdas?_?|slopes?|thresholds?|thr|deltas?|margins?|means?|mu|momentum|coef\w*|factors?"
        r"|strength|k|a|lambd"
    ),
    "probability": Role(r"p|probs?|probabilit\w+|dropout\w*|keep_prob|drop_prob"),
    "definite matrix": Role(r"\w*(cov|covar|covariance|precision|spd|psd|gram|hessian)\w*"),
    "triangular matrix": Role(r"\w*(chol|cholesky|tril|lower)\w*"),
    "small number": Role(r"eps\w*|epsilon|tol\w*"),
    "tolerance": _part(r"(^|_)(eps|epsilon|[ar]?tol)(_|$|\d)|toler"),
    "lower bound": Role(r"min|low(er)?|lo|[ab]_?min"),
    "upper bound": Role(r"max|high|upper|hi|[ab]_?max|clip\w*"),
    # Counts, sizes and options.
    "step count": _part(r"iter|step|loop|round|terms|(^|_)it(s|$)"),
    "dim": Role(r"dims?|axis|axes|\w+_dim|\w+_axis"),
    "the dim": Role(r"dims?|axis"),
    "stride": Role(r"strides?|dilations?|groups?"),
    "padding": Role(r"pad(ding)?s?"),
    "convolution option": Role(r"stride|padding|dilation"),
    "window": Role(r"kernel_size|ksize|window(_size)?|block_size|chunk_size"),
    "count": Role(
        r"n|num_?\w*|\w*count|steps?|\w*_size|bits|\w*bits|top_?k|max_\w+|min_\w+|n_\w+|size|levels?|power|order|exponent"
    ),
    "shape": Role(r"size|shape|\w+_shape|\w+_size"),
    "batch size": Role(r"b(s|sz|atch\w*)?|n_?batch\w*"),
    "flag": Role(
        r"is_\w+|use_\w+|has_\w+|\w*training|inplace|keep_?dims?|return_\w+|requires_\w+|with_\w+|\w*flag|preserve_\w+"
        r"|do_\w+"
    ),
    "mode": Role(r"mode|reduction|\w*type|kind|method|\w*_mode|name"),
    "memory format": Role(r"memory_format"),
    "dtype": Role(r"dtype|\w+_dtype"),
    "type": Role(r"\w+_type"),
    "device": Role(r"device|\w+_device"),
    "seed": Role(r"seed"),
    "options": Role(r"\w*kwargs|\w*params|cfg|\w*options"),
    "left out": Role(r"group|pg|process_group|generator|out|config|options|name"),
    "gradient control": _part(r"grad|detach|stop|backward|train|inplace|freeze|frozen"),
    "no gradient needed": _part(
        r"no_grad|inference_mode|is_grad_enabled|requires_grad|training|jit|onnx|export|tracing|compil"
    ),
    "export": _part(r"onnx|export"),
    "backward wanted": Role(r"(is_|needs_|with_|save_for_|requires_)?(grad|backward|bwd)(_enabled|_needed|_wanted)?"),
    # What constructors of layers call their sizes.
    "input size": Role(
        r"(in|input)_?\w*|d_model|\w*embed\w*|n_?in|features?|num_features|channels|dim|size|normalized_shape"
    ),
    "output size": Role(r"(out|output|hidden)_?\w*|n_?out|units|width|d_\w+|inner_dim"),
    "head count": Role(r"(num|n)_?heads?|heads?|groups?"),
    "layer count": Role(r"(num|n)_?(layers?|steps?|blocks?|classes|embeddings)|depth|vocab_size"),
    "kernel size": Role(r"kernel(_size)?|window(_size)?"),
    # Functions, methods, modules.
    "function": Role(
        r"(\w*_)?(fn|func|function|f|op|act|activation|run_function|callable|surrogate\w*|subgraph|graph|gm|body|closure)"
        r"|(fn|func|function)_\w+"
    ),
    "stopping test": Role(
        r"(\w*_)?(cond|condition|pred|predicate|stop|stopping|until|converged|done)(_?(fn|func|function))?"
    ),
    "combining function": Role(
        r"(\w*_)?(combine|merge|join|reduce|accumulate|assoc\w*|monoid)(r|_?(fn|func|function|op))?"
    ),
    "numerical derivative": _part(
        r"fprime|num(eric(al)?)?_?(diff|grad|jac|hess|deriv)|finite_?diff|differentiate|approx_(deriv|grad|jac|hess)"
        r"|(^|_)derivative$"
    ),
    "forward method": _part(r"forward|step|scan|unroll|recur"),
    "entry point": Role(r"main|train|test|run|benchmark|demo|example"),
    "action": Role(
        r"backward|step|save|load|dump|write|write_text|write_bytes|unlink|rmdir|mkdir|touch|system|run|spawn|send|recv"
        r"|post|all_reduce|all_gather|broadcast_|save_for_backward|load_state_dict|load_inline|init_process_group|tofile"
        r"|savez|savetxt|memmap|set_default_dtype|manual_seed|share_memory_"
    ),
    "extension module": _part(r"(^|_)(_c|_ext|ext|cuda|cpp|kernels?|extension)$|^(ctypes|cupy|cffi)$"),
    "part of a model": _part(
        r"layer|block|stage|level|depth|head|module|expert|scale|iter|group|codebook|quantiz|hop|branch"
    ),
    # The rest.
    "gradient": Role(r"\w*grad\w*|g|gy|dy|d_?out\w*|dz|delta|dl_?d\w+|upstream\w*|d[a-z]\w*"),
    "unused": _part(r"unused|dummy|ignore|empty|placeholder"),
    "real part": _part(r"real|(^|_)(re|r)$"),
    "imaginary part": _part(r"imag|(^|_)(im|i)$"),
    "no dimension": Role(
        r"torch|tensor|optional|int|float|bool|str|default|none|list|tuple|callable|any|or|and|the|of|e|g|i|see|if"
    ),
}
# Attributes under which modules say how wide their input is; the first that a module has counts.
INPUT_WIDTHS = (
    "in_features",
    "input_size",
    "embedding_dim",
    "embed_dim",
    "num_features",
    "normalized_shape",
    "in_channels",
)

_SURROGATE = re.compile(
    r"straight[\s_-]*through|surrogate|natural[\s_-]*gradient|pseudo[\s_-]*(?:gradient|derivative)|"
    r"grad(?:ient)?s?[\s_-]*(?:revers|scal|clip)\w*|rev(?:erse[sd]?|ersing)?[\s_-]*(?:the[\s_-]*)?grad\w*|"
    r"approximat\w* (?:of )?(?:the )?(?:gradient|derivative)|(?:gradient|derivative)s? (?:is |are )?approximat|"
    r"(?:replac\w+|instead of|in place of)\s+(?:the\s+)?(?:true|correct|real|actual)\s+(?:gradient|derivative)",
    re.IGNORECASE,
)
_ABBREVIATED = re.compile(r"(?<![A-Z])STE(?![a-z])|(?:^|_)ste(?:_|$)")
_SIDES = re.compile(r"height|width|\bh\s*,\s*w\b|\b[hw]_(?:in|out)\b", re.IGNORECASE)


@lru_cache(maxsize=4096)
def is_a(name: str, role: str) -> bool:
    """Is this by custom the name of such a thing? Underscores around it do not matter.

    >>> is_a("chunk_indices", "integer"), is_a("x.offsets()", "integer"), is_a("weight", "integer")
    (True, True, False)
    """
    pattern = _compiled(role)
    if ROLES[role].part:
        return pattern.search(re.sub(r"\W+", "_", name).lower()) is not None
    return any(pattern.fullmatch(text) for text in (name.lower(), name.strip("_").lower()))


@cache
def _compiled(role: str) -> re.Pattern[str]:
    """At its first use: lint asks for a few of them, and compiling all takes longer than reading a file."""
    return re.compile(ROLES[role].pattern)


def roles(name: str) -> frozenset[str]:
    """All that a thing of this name may be.

    >>> sorted(roles("attention_mask"))
    ['integer', 'mask', 'zero-one label']
    """
    return frozenset(role for role in ROLES if is_a(name, role))


def gradient_names(name: str) -> Iterator[str]:
    """How the gradient of something of this name is called.

    >>> list(gradient_names("x"))[:3]
    ['dx', 'd_x', 'grad_x']
    """
    for spelling in ("d{}", "d_{}", "grad_{}", "{}_grad", "g{}", "g_{}", "grad{}", "{}grad"):
        yield spelling.format(name)


def surrogate_words(text: str) -> str:
    """The words in which a text speaks of a gradient that is not meant to be the derivative.

    >>> surrogate_words("a straight-through estimator"), surrogate_words("a SYSTEM")
    ('straight-through', '')
    """
    match = _SURROGATE.search(text) or _ABBREVIATED.search(text)
    return match.group() if match else ""


def speaks_of_sides(text: str) -> bool:
    """Does a text speak of the height and width of images?"""
    return _SIDES.search(text) is not None
