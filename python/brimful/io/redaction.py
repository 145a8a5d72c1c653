"""Masks the secrets of URLs in errors, logs and summaries.

A secret is the text before an `@`, and the value of every option in the query that is not known to
be harmless. Callers need to do nothing: `BrimfulError` redacts its sentence, and the command line
its log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: The replacement of a secret.
MASK = "***"

#: The text before an `@` in the form of a URL, which is not secret.
_FORM = "USER:PASSWORD"
#: Options of documents and of pyarrow's file systems that hold no secret; messages show them to
#: tell URLs apart.
_HARMLESS = frozenset(
    {
        "allow_bucket_creation",
        "allow_bucket_deletion",
        "allow_delayed_open",
        "blob_storage_authority",
        "dfs_storage_authority",
        "blob_storage_scheme",
        "dfs_storage_scheme",
        "endpoint_override",
        "field",
        "region",
        "retry_limit_seconds",
        "scheme",
        "tls_verify",
    }
)
_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*://)(?P<rest>[^\s'\"<>]*)", re.IGNORECASE)
_WORD = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*://)(?P<rest>.*)", re.IGNORECASE | re.DOTALL)


def redacted(text: str) -> str:
    """Return a sentence with the secrets of the URLs in it masked."""
    return _URL.sub(_masked, text) if "://" in text else text


def redacted_word(word: str) -> str:
    """Return a word of a command line with secrets masked; a URL in it extends to its end."""
    return _WORD.sub(_masked, word) if "://" in word else word


def redacted_about(url: str, text: str) -> str:
    """Mask secrets in a sentence of another library about `url`, which may quote parts of it."""
    text = text.replace(url, redacted_word(url))
    for secret in sorted(_secrets(url), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return redacted(text)


def _masked(match: re.Match[str]) -> str:
    user, rest = _split_user(match["scheme"], match["rest"])
    path, question, query = rest.partition("?")
    options = "&".join(_option(option) for option in query.split("&"))
    shown = user if user == _FORM else MASK
    return f"{match['scheme']}{shown + '@' if user else ''}{path}{question}{options}"


def _option(option: str) -> str:
    name, equals, value = option.partition("=")
    if not equals:
        # Perhaps the rest of a value with an `&` that is not percent-encoded.
        return MASK if name else ""
    return option if not value or name.lower() in _HARMLESS else f"{name}={MASK}"


def _split_user(scheme: str, rest: str) -> tuple[str, str]:
    """Return the parts of a URL, without its scheme, before and after the `@`.

    A secret that is not percent-encoded may hold slashes, question marks and `@` itself. An `@`
    without a colon before it belongs to the path.
    """
    user, at, after = rest.rpartition("@")
    if at and ":" in user:
        return user, after
    user, at, after = rest.partition("@")
    # In URLs of Azure the text before the `@` is a container.
    public = user == "anonymous" or scheme.lower().startswith("abfs")
    if at and not set(user) & set("/?") and not public:
        return user, after
    return "", rest


def _secrets(url: str) -> set[str]:
    match = _WORD.search(url)
    if match is None:
        return set()
    user, rest = _split_user(match["scheme"], match["rest"])
    options = (option.partition("=") for option in rest.partition("?")[2].split("&"))
    secrets = [user, *user.split(":", 1)]
    secrets += [value for name, _, value in options if name.lower() not in _HARMLESS]
    return set(_with_plain(secrets))


def _with_plain(secrets: Iterable[str]) -> Iterable[str]:
    """Yield secrets as given and percent-decoded, but no short ones, which are parts of words."""
    from urllib.parse import unquote

    for secret in secrets:
        yield from (form for form in (secret, unquote(secret)) if len(form) > 2)
