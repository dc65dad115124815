"""Source bytes to text and back, as Python itself reads them."""

from __future__ import annotations

import codecs
import re
import tokenize
from io import BytesIO

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


def encoding_of(data: bytes) -> str:
    """The codec of these bytes: a byte-order mark, a coding cookie, else UTF-8.

    >>> encoding_of(b"# coding: latin-1")
    'iso-8859-1'
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SyntaxError("UTF-16, which Python does not read as source")
    if any(_COOKIE.match(line) for line in data.split(b"\n", 2)[:2]):
        return tokenize.detect_encoding(BytesIO(data).readline)[0]
    return "utf-8-sig" if data.startswith(codecs.BOM_UTF8) else "utf-8"


def decoded(data: bytes) -> str:
    """Source bytes as text, without the byte-order mark.

    >>> decoded(b"x = 1")
    'x = 1'
    """
    return data.decode(encoding_of(data)).removeprefix("\ufeff")


def encoded(text: str) -> bytes:
    """The bytes that `decoded` reads as this text: a text may name an encoding of its own.

    >>> decoded(encoded("# coding: latin-1\\n'é'")).endswith("'é'")
    True
    """
    data = text.encode("utf-8", "surrogatepass")
    try:
        return text.encode(encoding_of(data))
    except (UnicodeEncodeError, LookupError, SyntaxError):
        return data
