"""What is not stored of what commands print: values of secret variables, tokens of known shapes, private keys."""

import base64
import functools
import json
import os
import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote_from_bytes, unquote_to_bytes

import msgspec

REACH_BYTES = 64 * 1024
CONTEXT_BYTES = 16
LINE_BYTES = 16
CODED_BYTES = 8

_SECRET_NAME = re.compile(
    r"TOKEN(?!IZ)|SECRET|PASSW(?:OR)?D|PASSPHRASE|(?<![A-Z])PASS(?![A-Z])|(?<=_)PWD|CREDENTIAL|COOKIES?(?![A-Z])"
    r"|(?:API|ACCESS|PRIVATE)_?KEY|WEBHOOK"
)
_DOUBTFUL_NAME = re.compile(r"(?<![A-Z])(?<!PUBLIC_)(?:KEYS?|AUTH|PAT|PRIVATE)(?![A-Z])")
_HARMLESS_NAME = re.compile(
    r"(?:^|_)(?:FILE|PATH|DIR|SOCK|SOCKET|HOME|HELPER|COMMAND|TYPE|NAME|USER|USERNAME|HOST|PORT|TTL|KEY_ID"
    r"|(?<!WEBHOOK_)UR[LI])$"
)
_URL_PASSWORD = re.compile(rb"://[^\s/:@\"'<>]{0,512}+:([^\s/\"'<>]{1,2048})@")


class Secrets(msgspec.Struct, frozen=True, kw_only=True):
    """Values to redact wherever they stand, plain or encoded."""

    values: tuple[bytes, ...] = ()

    def __repr__(self) -> str:
        return f"Secrets({len(self.values)} values)"


def secrets_in(*environments: Mapping[str, str]) -> Secrets:
    """The values of variables named like secrets, and the passwords in URLs whatever the name.

    Left out are values too short or too plain to be redacted everywhere, and names that end in ``_FILE``, ``_PATH``
    and the like.
    """
    pairs = {(name.upper(), os.fsencode(value).strip()) for env in environments for name, value in env.items()}
    found = {secret for name, value in pairs for secret in (*_by_name(name, value), *_in_urls(value))}
    return Secrets(values=tuple(sorted(found)))


def _by_name(name: str, value: bytes) -> Iterator[bytes]:
    if _HARMLESS_NAME.search(name) or _is_path(value):
        return
    is_random = len(value) >= LINE_BYTES and _is_mixed(value)
    if (_SECRET_NAME.search(name) and _is_telling(value)) or (_DOUBTFUL_NAME.search(name) and is_random):
        yield value
        lines = value.splitlines()
        yield from (line.strip() for line in lines if len(lines) > 1 and len(line.strip()) >= LINE_BYTES)


def _in_urls(value: bytes) -> Iterator[bytes]:
    for password in _URL_PASSWORD.findall(value):
        yield from filter(_is_telling, {password, unquote_to_bytes(password)})


def _is_telling(value: bytes) -> bool:
    """Whether ``value`` is no count, flag or placeholder, which would be redacted in the middle of ordinary output."""
    if value.isdigit():
        return len(value) >= 12
    return len(value) >= (6 if _is_mixed(value) else 8) and len(set(value)) >= 4


def _is_mixed(value: bytes) -> bool:
    return bool(re.search(rb"[A-Za-z]", value) and re.search(rb"\d", value))


def _is_path(value: bytes) -> bool:
    """Whether ``value`` is a path; base64 may begin with a slash too."""
    if not re.fullmatch(rb"(?:~|\.{1,2})?/[^\s:=]*", value):
        return False
    return b"." in value or not all(re.search(kind, value) for kind in (rb"[a-z]", rb"[A-Z]", rb"\d"))


class _Shape(msgspec.Struct, frozen=True):
    """A kind of token: where ``anchor`` stands in lower case, ``pattern`` is tried from there.

    A pattern's only group, if it has one, is the secret; a match without it is passed over. Patterns are such that
    a failed attempt costs no more than a short run, and matches of one shape do not overlap: that keeps time linear.
    """

    kind: str
    anchor: bytes
    pattern: re.Pattern[bytes]


def _shapes(kind: str, anchors: str, rest: bytes, *, before: bytes = b"", flags: int = 0) -> Iterator[_Shape]:
    for anchor in anchors.split():
        pattern = re.compile(before + re.escape(anchor.encode()) + rest, flags)
        yield _Shape(kind, anchor.lower().encode(), pattern)


def _assigned(kind: str, names: str, value: bytes) -> Iterator[_Shape]:
    sign = rb"\\?[\"']?\s{0,8}(?:=>|[:=>])\s{0,8}\\?[\"']?"
    return _shapes(kind, names, sign + value, flags=re.IGNORECASE)


# The start of a word; after a backslash escape, a colour sequence or a percent escape a word starts as well.
_EDGE = rb"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[\da-fA-F]{4})|(?<=[\d;\[]m)|(?<=%[\da-fA-F]{2}))"
_GITLAB = "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glsoat- glimt- glffct- glagent- gloas- glwt- GR1348941"
_AWS_SECRETS = "secret_access_key secretaccesskey secret-access-key aws_secret_key"
_KEY = rb"(?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
# To its end or, where that does not come before another begins, as far as it looks like a key.
_KEY_BODY = (
    rb"(?:[^-]*+(?:-(?!----(?:BEGIN|END) )[^-]*+)*-----END "
    + _KEY
    + rb"|(?:\s|\\+[nrt]|[\"'+>|,]|[A-Za-z0-9+/=]{16,}+"
    + rb"|(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset): [^\r\n\\]{0,200}+)*)"
)
_KEY_LABELS = (b"PRIVATE", b"RSA PRI", b"EC PRIV", b"DSA PRI", b"OPENSSH", b"ENCRYPT", b"PGP PRI")
_CODED_LABELS = b"|".join(re.escape(base64.b64encode(b"-----BEGIN " + label)[14:]) for label in _KEY_LABELS)
_CODED_KEY = rb"(?:%s)[A-Za-z0-9+/=]{16,}+(?:(?:\s|\\[nr]){1,8}[A-Za-z0-9+/=]{40,}+)*" % _CODED_LABELS

# Where a format is published, its page is named; the others are as their services hand them out.
SHAPES = (
    # docs.github.com, "token formats"; since 2026 installation tokens are ghs_<app>_<JWT>, of any length
    *_shapes("github token", "ghp_ gho_ ghu_ ghr_ github_pat_", rb"\w{36,}+"),
    *_shapes("github token", "ghs_", rb"[\w.-]{36,}+"),
    # docs.gitlab.com, "token prefixes"; routable tokens have dots
    *_shapes("gitlab token", _GITLAB, rb"[\w.-]{20,}+"),
    # docs.aws.amazon.com, IAM identifiers, "unique ID prefixes"
    *_shapes("aws access key id", "AKIA ASIA ABIA ACCA", rb"[A-Z0-9]{16}(?![A-Za-z0-9])", before=_EDGE),
    *_assigned("aws secret access key", _AWS_SECRETS, rb"([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"),
    *_assigned("aws session token", "session_token sessiontoken", rb"([A-Za-z0-9/+]{80,}+=*)"),
    # docs.slack.dev, "tokens" and "incoming webhooks"
    *_shapes("slack token", "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", rb"[\w%-]{10,}+"),
    *_shapes("slack webhook", "hooks.slack.com/", rb"(?:services|workflows|triggers)/([A-Za-z0-9+/_-]{16,}+)"),
    *_shapes("discord webhook", "/api/webhooks/", rb"\d{15,25}/([\w-]{40,}+)"),
    # cloud.google.com, API keys, OAuth access tokens and client secrets
    *_shapes("google api key", "AIza", rb"[\w-]{35}(?![\w-])", before=_EDGE),
    *_shapes("google token", "ya29. GOCSPX-", rb"[\w-]{20,}+"),
    *_shapes("anthropic key", "sk-ant-", rb"[\w-]{20,}+"),
    *_shapes("api key", "sk-proj- sk-svcacct- sk-admin- sk-None- sk-or-v1-", rb"[\w-]{20,}+", before=_EDGE),
    *_shapes("api key", "sk-", rb"(?=[A-Za-z]{0,64}\d)[A-Za-z0-9]{20,}+", before=_EDGE),
    # docs.stripe.com, "API keys" and "webhook signatures"
    *_shapes("stripe key", "sk_live_ rk_live_ sk_test_ rk_test_ whsec_", rb"[A-Za-z0-9]{16,}+"),
    # github.blog 2021-09-23, "npm's new access token format"
    *_shapes("npm token", "npm_", rb"[A-Za-z0-9]{36,}+"),
    # pypi.org: macaroons; base64 of their version and of "pypi.org" or "test.pypi.org"
    *_shapes("pypi token", "pypi-AgE", rb"[\w-]{50,}+"),
    *_shapes("hugging face token", "hf_ api_org_", rb"[A-Za-z0-9]{30,}+"),
    *_shapes("sendgrid key", "SG.", rb"[\w-]{16,64}\.[\w-]{16,}+"),
    # docs.digitalocean.com, "personal access tokens"
    *_shapes("digitalocean token", "dop_v1_ doo_v1_ dor_v1_", rb"[a-f0-9]{32,}+"),
    *_shapes("docker token", "dckr_pat_ dckr_oat_", rb"[\w-]{20,}+"),
    # developer.hashicorp.com, Vault "token prefix"
    *_shapes("vault token", "hvs. hvb. hvr.", rb"[\w-]{24,}+"),
    *_shapes("grafana token", "glsa_ glc_", rb"[A-Za-z0-9+/_=]{32,}+"),
    *_shapes("shopify token", "shpat_ shpca_ shppa_ shpss_", rb"[a-fA-F0-9]{32,}+"),
    *_shapes("rubygems key", "rubygems_", rb"[a-f0-9]{48}"),
    *_shapes("databricks token", "dapi", rb"[a-f0-9]{32}(?:-\d)?(?![A-Za-z0-9])", before=_EDGE),
    *_shapes("age key", "AGE-SECRET-KEY-1", rb"[A-Za-z0-9]{58}"),
    # RFC 7519, and RFC 7516 with five parts; a base64url object begins with eyJ
    *_shapes("jwt", "eyJ", rb"[\w-]{10,}+\.[\w-]*+\.[\w-]{8,}+(?:\.[\w-]+){0,2})|eyJ[\w-]*+", before=b"("),
    # RFC 6750 and RFC 7617; token68 of RFC 9110
    *_assigned("authorization header", "authorization", rb"(?:bearer|basic|token|apikey)\s{1,8}([\w.~+/=-]{8,}+)"),
    *_assigned("api key header", "x-api-key private-token x-auth-token x-vault-token", rb"([\w.~+/=-]{8,}+)"),
    *_shapes("bearer token", "bearer", rb"\s{1,8}((?=[A-Za-z._~+/-]{0,64}\d)[\w.~+/=-]{20,}+)", flags=re.IGNORECASE),
    # learn.microsoft.com, "connection strings" and "service SAS"
    *_shapes("azure key", "accountkey= sharedaccesskey=", rb"([A-Za-z0-9+/]{40,}+={0,2})", flags=re.IGNORECASE),
    *_shapes("azure signature", "?sig= &sig=", rb"([A-Za-z0-9%+/]{40,}+={0,2})"),
    *_shapes("url password", "://", _URL_PASSWORD.pattern.removeprefix(b"://")),
    # RFC 7468; RFC 9580, section 6
    *_shapes("private key", "-----BEGIN", rb" " + _KEY + _KEY_BODY),
    *_shapes("private key", "LS0tLS1CRUdJTi", _CODED_KEY),
)


class _Span(msgspec.Struct, frozen=True):
    """A secret at offsets of a stream, and what stands in its place."""

    start: int
    end: int
    mark: bytes

    def rank(self) -> tuple[int, int, bytes]:
        """The order of spans: by where they begin, the longest first."""
        return self.start, -self.end, self.mark


class Redactor:
    """A stream without its secrets: the same whatever the chunks it comes in, in bounded memory and linear time.

    A secret in, or overlapping, another makes one mark with it; ``count`` is the number of marks. No match is longer
    than ``reach_bytes``, and some three times as much is held back.
    """

    def __init__(self, secrets: Secrets, *, reach_bytes: int = REACH_BYTES) -> None:
        self.count = 0
        self._reach_bytes = reach_bytes
        self._literals = _literals(secrets.values, reach_bytes // 4)
        self._held = bytearray()
        # Offsets in the stream: of what is held, of the first byte not yet judged, and of the first not yet given out.
        self._base = 0
        self._judged = 0
        self._given = 0
        self._spans: list[_Span] = []
        self._resume: dict[bytes, int] = {}

    def feed(self, chunk: bytes) -> bytes:
        """What can be said of the stream so far; the rest comes later."""
        self._held += chunk
        received = self._base + len(self._held)
        is_enough = received - self._judged >= 2 * self._reach_bytes
        return self._give(received - self._reach_bytes) if is_enough else b""

    def finish(self) -> bytes:
        """The rest, once the stream has ended, however it did."""
        return self._give(self._base + len(self._held))

    def _give(self, until: int) -> bytes:
        window = bytes(self._held)
        self._spans += self._found(window, until)
        given = bytearray()
        for span in sorted((span for span in self._spans if span.start < until), key=_Span.rank):
            if span.start >= self._given:
                given += window[self._given - self._base : span.start - self._base] + span.mark
                self.count += 1
            self._given = max(self._given, span.end)
        if self._given < until:
            given += window[self._given - self._base : until - self._base]
            self._given = until
        self._forget(until)
        return bytes(given)

    def _forget(self, until: int) -> None:
        self._spans = [span for span in self._spans if span.start >= until]
        self._judged = until
        past = max(0, until - CONTEXT_BYTES - self._base)
        del self._held[:past]
        self._base += past

    def _found(self, window: bytes, until: int) -> Iterator[_Span]:
        """The secrets that begin, or whose anchor stands, in ``window`` between what has been judged and ``until``."""
        base, start, stop = self._base, self._judged - self._base, until - self._base
        for literal in self._literals:
            for at in _places(literal, window, start, stop):
                yield _Span(base + at, base + at + len(literal), b"[redacted]")
        lowered = window.lower()
        for shape in SHAPES:
            for at in _places(shape.anchor, lowered, start, stop):
                if base + at < self._resume.get(shape.anchor, 0):
                    continue
                if match := shape.pattern.match(window, at, at + self._reach_bytes):
                    self._resume[shape.anchor] = base + match.end()
                    begin, end = match.span(shape.pattern.groups)
                    if begin >= 0:
                        yield _Span(base + begin, base + end, b"[redacted: %s]" % shape.kind.encode())


def text(secrets: Secrets, value: str) -> str:
    """A short string without its secrets: a reason, the name of a file."""
    redactor = Redactor(secrets)
    kept = redactor.feed(value.encode("utf-8", "surrogatepass")) + redactor.finish()
    return kept.decode("utf-8", "replace") if redactor.count else value


def _places(literal: bytes, window: bytes, start: int, stop: int) -> Iterator[int]:
    """Where ``literal`` begins in ``window``, from ``start`` on and before ``stop``."""
    at = window.find(literal, start, stop + len(literal) - 1)
    while at >= 0:
        yield at
        at = window.find(literal, at + 1, stop + len(literal) - 1)


@functools.lru_cache(maxsize=8)
def _literals(values: tuple[bytes, ...], piece_bytes: int) -> tuple[bytes, ...]:
    """Each value as it may stand in a stream, a long one in pieces."""
    forms = {form for value in values if value for form in _forms(value)}
    starts = ((form, at) for form in forms for at in range(0, len(form), piece_bytes))
    return tuple(sorted({form[at : at + piece_bytes] for form, at in starts if not at or len(form) - at > CODED_BYTES}))


def _forms(value: bytes) -> Iterator[bytes]:
    yield value
    for safe in ("", "/", "!'()*~"):
        quoted = quote_from_bytes(value, safe=safe)
        yield from (quoted.encode(), quoted.replace("%20", "+").encode())
        yield re.sub(r"%[0-9A-F]{2}", lambda escape: escape[0].lower(), quoted).encode()
    readable = value.decode("utf-8", "surrogateescape")
    yield json.dumps(readable)[1:-1].encode()
    yield os.fsencode(json.dumps(readable, ensure_ascii=False)[1:-1])
    yield from _base64_forms(value)


def _base64_forms(value: bytes) -> Iterator[bytes]:
    """``value`` in base64, by itself and at each of the three places it can have in a longer text."""
    for alphabet in (b"+/", b"-_"):
        yield base64.b64encode(value, alphabet)
        for before in range(3):
            coded = base64.b64encode(bytes(before) + value, alphabet)
            core = coded[(0, 2, 3)[before] : (before + len(value)) * 8 // 6]
            if len(core) >= CODED_BYTES:
                yield core
