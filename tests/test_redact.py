"""What is kept of a stream with secrets in it, whatever the chunks it comes in."""

import base64
import json
import os
import random
import re
import sys
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitevals.process import Ended, Limits, Outcome, run
from gitevals.redact import SHAPES, Redactor, Secrets, _Span, secrets_in, text

REACH_BYTES = 512


def of(length: int, alphabet: str = "aB3dE5gH7jK9mN2pQ4rS6tU8vW") -> str:
    return "".join(alphabet[at * 7 % len(alphabet)] for at in range(length))


def key(label: str, *, rows: int = 3, end: str = "\n", tail: str = "KEY-----") -> str:
    """A private key; samples are put together at run time, so that no scanner takes this file for a leak."""
    lines = [f"-----BEGIN {label} {tail}", *(of(64) for _ in range(rows)), f"-----END {label} {tail}"]
    return end.join(lines)


def b64(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


JWE = ".".join((b64('{"alg":"dir","enc":"A128GCM"}').rstrip("="), "", of(16), of(30), of(22)))
JWT = ".".join((b64('{"alg":"HS256","typ":"JWT"}'), b64('{"sub":"1234567890","a":1}'), of(43))).replace("=", "")
RSA = "RSA PRIVATE KEY-----"
HEX = "0123456789abcdef"
UPPER = "A2B3C4D5E6F7G7H"

# Kind, what stands before it, the secret, what stands after it.
TOKENS = [
    ("github token", "push: ", "ghp_" + of(36), "\n"),
    ("github token", "(", "gho_" + of(36), ")"),
    ("github token", "'", "ghu_" + of(36), "'"),
    ("github token", "token=", "ghs_" + of(36), "&x=1"),
    ("github token", "new: ", "ghs_123456_" + JWT, " "),
    ("github token", '"', "ghr_" + of(76), '"'),
    ("github token", "x", "github_pat_" + of(22) + "_" + of(59), ";"),
    ("gitlab token", "", "glpat-" + of(20), " "),
    ("gitlab token", "", "glpat-" + of(27) + ".01." + of(9, HEX), " "),
    ("gitlab token", "runner ", "glrt-t1_" + of(27), " "),
    ("gitlab token", "", "glcbt-64_" + of(20), " "),
    ("gitlab token", "", "GR1348941" + of(20), " "),
    ("aws access key id", "id ", "AKIA" + of(16, UPPER), " "),
    ("aws access key id", "\\n", "ASIA" + of(16, UPPER), "\\n"),
    ("aws access key id", "\x1b[32m", "AKIA" + of(16, UPPER), "\x1b[0m"),
    ("aws access key id", "a%3D", "AKIA" + of(16, UPPER), "%26"),
    ("aws secret access key", "aws_secret_access_key = ", of(38) + "/+", "\n"),
    ("aws secret access key", "AWS_SECRET_ACCESS_KEY=", of(40), "\n"),
    ("aws secret access key", '"SecretAccessKey": "', of(40), '"'),
    ("aws secret access key", "<SecretAccessKey>", of(40), "</SecretAccessKey>"),
    ("aws session token", "aws_session_token: ", of(200), " "),
    ("slack token", "", "xoxb-123456789012-1234567890123-" + of(24), " "),
    ("slack token", "", "xapp-1-A0123-123-" + of(20, HEX), " "),
    ("slack webhook", "https://hooks.slack.com/services/", "T0000000/B0000000/" + of(24), "\n"),
    ("discord webhook", "https://discord.com/api/webhooks/123456789012345678/", of(68), " "),
    ("google api key", "?key=", "AIza" + of(35), "&"),
    ("google token", "", "ya29." + of(60), " "),
    ("google token", "", "GOCSPX-" + of(28), " "),
    ("anthropic key", "\\n", "sk-ant-api03-" + of(80), " "),
    ("api key", "", "sk-proj-" + of(80), " "),
    ("api key", "", "sk-" + of(48), " "),
    ("stripe key", "", "sk_live_" + of(24), " "),
    ("stripe key", "", "rk_live_" + of(24), " "),
    ("npm token", "_authToken=", "npm_" + of(36), "\n"),
    ("pypi token", "", "pypi-AgEIcHlwaS5vcmc" + of(120), " "),
    ("hugging face token", "", "hf_" + of(34), " "),
    ("sendgrid key", "", "SG." + of(22) + "." + of(43), " "),
    ("digitalocean token", "", "dop_v1_" + of(64, HEX), " "),
    ("docker token", "", "dckr_pat_" + of(27), " "),
    ("vault token", "", "hvs." + of(90), " "),
    ("grafana token", "", "glsa_" + of(32) + "_" + of(8, HEX), " "),
    ("shopify token", "", "shpat_" + of(32, HEX), " "),
    ("rubygems key", "", "rubygems_" + of(48, HEX), " "),
    ("databricks token", "", "dapi" + of(32, HEX), " "),
    ("age key", "", "AGE-SECRET-KEY-1" + of(58, UPPER), " "),
    ("jwt", "cookie ", JWT, ";"),
    ("jwt", "jwe ", JWE, " "),
    ("authorization header", "Authorization: Bearer ", of(30), "\r\n"),
    ("authorization header", "> authorization: basic ", b64("user:password"), "\n"),
    ("authorization header", '{"Authorization": "Token ', of(30), '"}'),
    ("authorization header", '{\\"authorization\\":\\"Bearer ', of(30), '\\"}'),
    ("bearer token", "curl -H 'Bearer ", of(30), "'"),
    ("api key header", "PRIVATE-TOKEN: ", of(12), "\n"),
    ("azure key", "AccountName=a;AccountKey=", of(86) + "==", ";EndpointSuffix=x"),
    ("azure signature", "https://a.blob.core.windows.net/c?sv=1&sig=", of(43) + "%3D", "&se=2"),
    ("url password", "postgres://admin:", "p@ss" + of(4), "@db.example:5432/app"),
    ("url password", "redis://:", of(5), "@cache"),
    ("private key", "", key("RSA PRIVATE"), "\n"),
    ("private key", "", key("PRIVATE", end="\r\n"), "\r\n"),
    ("private key", "", key("EC PRIVATE"), "\n"),
    ("private key", "", key("OPENSSH PRIVATE"), "\n"),
    ("private key", "", key("ENCRYPTED PRIVATE"), "\n"),
    ("private key", "", key("PGP PRIVATE", tail="KEY BLOCK-----"), "\n"),
    ("private key", '{"k": "', key("RSA PRIVATE", end="\\n"), '"}'),
    ("private key", '"{\\"k\\": \\"', key("RSA PRIVATE", end="\\\\n"), '\\"}"'),
    ("private key", "+", key("RSA PRIVATE", end="\n+"), "\n"),
    ("private key", "a | ", key("PRIVATE", end="\n2030-01-02T03:04:05Z a | "), "\n"),
    ("private key", "cut ", key("RSA PRIVATE").rpartition("-----END")[0], "-- Ran 3 tests"),
    ("private key", "cut ", f"-----BEGIN {RSA}\nProc-Type: 4,ENCRYPTED\n\n{of(64)}\n", "FAILED x.py"),
    ("private key", "client-key-data: ", b64(key("RSA PRIVATE")), "\n"),
    ("private key", "client-key-data: ", b64(key("PRIVATE")), "\n"),
]  # fmt: skip


def kept(chunks: Iterable[bytes], *values: str, reach_bytes: int = REACH_BYTES) -> bytes:
    redactor = Redactor(Secrets(values=tuple(value.encode() for value in values)), reach_bytes=reach_bytes)
    return b"".join([*map(redactor.feed, chunks), redactor.finish()])


def split(stream: bytes, *places: int) -> Iterator[bytes]:
    yield from (stream[start:end] for start, end in zip((0, *places), (*places, len(stream)), strict=True))


@pytest.mark.parametrize(("kind", "before", "secret", "after"), TOKENS, ids=[kind for kind, *_ in TOKENS])
def test_a_token_of_a_known_shape_is_redacted_wherever_the_stream_is_cut(
    kind: str, before: str, secret: str, after: str
) -> None:
    # With invalid UTF-8 around it, and so far from the start that a border of what is judged falls into it.
    lead = b"\xff\xfe line\n" * (2 * REACH_BYTES // 8) + before.encode()
    rest = after.encode() + b"\x80\xc3 and on\n" * (2 * REACH_BYTES // 10)
    stream, expected = lead + secret.encode() + rest, lead + b"[redacted: %s]" % kind.encode() + rest
    for at in range(len(lead) - 2, len(lead) + len(secret) + 2, 1 + len(secret) // 20):
        assert kept(split(stream, at)) == expected
        # So cut, what comes before ``at`` is judged first.
        assert kept(split(stream, at + REACH_BYTES)) == expected
    assert text(Secrets(), before + secret + after) == f"{before}[redacted: {kind}]{after}"


def test_there_is_a_sample_of_every_kind_and_each_anchor_belongs_to_one_shape() -> None:
    assert {kind for kind, *_ in TOKENS} == {shape.kind for shape in SHAPES}
    assert len({shape.anchor for shape in SHAPES}) == len(SHAPES)


@pytest.mark.parametrize(
    "harmless",
    [
        "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "id 123e4567-e89b-12d3-a456-426614174000",
        "/usr/lib/python3.11/site-packages/gitevals/redact.py:12",
        "token = None; password = ''; secret: null; api_key = os.environ['API_KEY']",
        "risk-based task-force-of-internationalization sk-learn desk-top sk-internationalizations",
        "tests/test_token.py::test_secret_access_key[sk-1] PASSED",
        "ghp_short npm_config_registry=https://registry.npmjs.org/ hf_hub_download AKIA AIza SG.x",
        "Authorization: Bearer $TOKEN, Authorization: Basic <credentials>, authorization: none",
        "bearer of responsibilities-and-obligations",
        "http://localhost:8080/a@b https://[::1]:443/ git@github.com:a/b.git ssh://git@host:22/a mailto:a@b.example",
        "https://hooks.slack.com/services/ eyJhbGciOiJIUzI1NiJ9 alone, eyJ.eyJ.eyJ",
        "[redacted] [redacted: github token] https://a:[redacted: url password]@b",
        "-----BEGIN CERTIFICATE-----\n" + of(64) + "\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\n" + of(64) + "\n-----END PUBLIC KEY-----",
        "-----BEGIN PGP PUBLIC KEY BLOCK-----\n" + of(64) + "\n-----END PGP PUBLIC KEY BLOCK-----",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + of(43) + " a@b",
        b64("-----BEGIN CERTIFICATE-----\n" + of(64)),
        base64.b64encode(random.Random(1).randbytes(100_000)).decode(),
    ],
)  # fmt: skip
def test_what_is_no_secret_stays(harmless: str) -> None:
    assert text(Secrets(), harmless) == harmless


def test_the_beginning_of_a_word_is_seen_across_a_border() -> None:
    stream = b"\n" * 2 * REACH_BYTES + b"xAKIA" + of(16, UPPER).encode() + b"\n" * 2 * REACH_BYTES
    for at in range(2 * REACH_BYTES, 2 * REACH_BYTES + 8):
        assert kept(split(stream, at + REACH_BYTES)) == stream


@pytest.mark.parametrize(
    ("name", "value", "is_secret"),
    [
        ("GITHUB_TOKEN", "not-a-known-shape", True),
        ("npm_config__authToken", "abcdefgh", True),
        ("DB_PASSWORD", "hunter2", True),
        ("PGPASSWORD", "correct horse", True),
        ("SMTP_PASS", "swordfish", True),
        ("MYSQL_PWD", "swordfish", True),
        ("SIGNING_PASSPHRASE", "four words of it", True),
        ("OPENAI_API_KEY", "abc-123-def", True),
        ("AWS_SECRET_ACCESS_KEY", "/" + of(30) + "/" + of(8), True),
        ("SSH_PRIVATE_KEY", "line one of a key\nline two of a key", True),
        ("GOOGLE_CREDENTIALS", '{"a": "b"}', True),
        ("SESSION_COOKIE", "sid=abcdefg", True),
        ("VAULT_SECRET_ID", "6f0d-1a2b", True),
        ("DISCORD_WEBHOOK_URL", "https://chat.example/hook/1/abc", True),
        ("STRIPE_KEY", of(24), True),
        ("GH_PAT", of(24), True),
        ("BASIC_AUTH", "user:abcdefgh1234", True),
        ("PWD", "/work/project1", False),
        ("OLDPWD", "swordfish-is-a-directory", False),
        ("SSH_AUTH_SOCK", "/run/user/1000/keyring/ssh", False),
        ("TOKEN_FILE", "token-file-1234567", False),
        ("CREDENTIALS_PATH", "credentials-1234567", False),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/home/me/Key1.json", False),
        ("DEPLOY_TOKEN", "./relative/path/to/it", False),
        ("TOKEN_URL", "https://auth.example/token1", False),
        ("AWS_ACCESS_KEY_ID", "key-id-123456789", False),
        ("MAX_TOKENS", "100000", False),
        ("TOKENIZERS_PARALLELISM", "disabled-or-1", False),
        ("USE_TOKEN", "true", False),
        ("TOKEN", "1", False),
        ("TOKEN", "", False),
        ("PASSWORD", "xxxxxxxxxxxx", False),
        ("SORT_KEY", "created_at_of_the_record", False),
        ("SSH_PUBLIC_KEY", "ssh-ed25519 AAAA1234567890", False),
        ("GIT_AUTHOR_NAME", "A U Thor 1234567890", False),
        ("KEYBOARD", "de-latin1-nodeadkeys", False),
        ("BYPASS_CACHE", "everywhere", False),
        ("EDITOR", "swordfish", False),
    ],
)
def test_variables_named_like_secrets_are_told_by_name_and_value(name: str, value: str, is_secret: bool) -> None:
    assert (value.encode() in secrets_in({"LANG": "C.UTF-8"}, {name: value}).values) is is_secret


def test_of_a_url_only_the_password_is_a_secret() -> None:
    found = secrets_in(
        {"DATABASE_URL": "postgres://admin:p%40ss-word@db.example/app", "http_proxy": "http://u:pw1234@p:1"}
    )
    assert found.values == (b"p%40ss-word", b"p@ss-word", b"pw1234")


def test_secrets_do_not_show_in_a_traceback() -> None:
    assert repr(Secrets(values=(b"hunter2",))) == "Secrets(1 values)"


@pytest.mark.parametrize(
    "form",
    [
        str,
        lambda value: quote(value, safe=""),
        quote,
        quote_plus,
        lambda value: re.sub("%..", lambda escape: escape[0].lower(), quote(value)),
        lambda value: json.dumps(value)[1:-1],
        lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
        b64,
        lambda value: base64.urlsafe_b64encode(value.encode()).decode(),
    ],
    ids=["plain", "percent", "path", "form", "lower", "json", "unicode", "base64", "base64url"],
)
@pytest.mark.parametrize("value", ["hunter2", 'é/?"~~ ÿÿÿ\n&ÿÿ>>>', "p" * 3 + of(300)])
def test_a_value_is_found_in_its_encoded_forms(form: object, value: str) -> None:
    assert callable(form)
    # A value longer than the reach allows is redacted in pieces.
    marks = kept([b"<", form(value).encode(), b">"], value)
    assert set(marks.removeprefix(b"<[redacted]").removesuffix(b">").split(b"[redacted]")) <= {b""}


@pytest.mark.parametrize("user", ["", "u", "us", "use"])
def test_a_value_inside_of_a_base64_text_leaves_only_its_neighbours(user: str) -> None:
    coded = b64(f"{user}:hunter2-hunter3:x")
    left = kept([b"x " + coded.encode()], "hunter2-hunter3")
    assert left.count(b"[redacted]") == 1
    assert len(left) <= len("x ") + len("[redacted]") + len(b64(f"{user}:")) + len(b64(":xyz"))


def test_overlapping_secrets_make_one_mark() -> None:
    stream = b"1 secret-one-two 2 secret-one 3 one-two-three"
    assert kept([stream], "secret-one", "secret-one-two", "one-two-three", "two-three") == (
        b"1 [redacted] 2 [redacted] 3 [redacted]"
    )
    assert kept([b"abcabcabcabcabc ghp_" + of(36).encode()], "abcabcabc", of(20)) == (
        b"[redacted] [redacted: github token]"
    )
    assert kept([b"ghp_" + of(36).encode()], "ghp_" + of(9)) == b"[redacted: github token]"
    assert kept([b"as it is"], "") == b"as it is"


@pytest.mark.parametrize("step", [1, 100, 10_000])
def test_what_is_longer_than_the_reach_is_redacted_up_to_it(step: int) -> None:
    stream = b"x " * 40 + b"glpat-" + b"x" * 4000
    expected = b"x " * 40 + b"[redacted: gitlab token]" + b"x" * (4006 - REACH_BYTES)
    assert kept(split(stream, *range(step, len(stream), step))) == expected


def test_many_secrets_are_all_found() -> None:
    values = [random.Random(number).randbytes(12).hex() for number in range(200)]
    redactor = Redactor(Secrets(values=tuple(value.encode() for value in values)))
    left = redactor.feed(" ".join(values).encode()) + redactor.finish()
    assert (left, redactor.count) == (b" ".join([b"[redacted]"] * 200), 200)


SECRET = "s3cret-é-value"
FRAGMENTS = st.sampled_from(
    [
        *("".join(row[1:]).encode() for row in TOKENS),
        *(part.encode() for row in TOKENS for part in (row[2][: len(row[2]) // 2], row[2][-9:])),
        SECRET.encode(), SECRET.encode()[:7], b64("user:" + SECRET).encode(), quote(SECRET).encode(),
        b"-----BEGIN RSA PRIVATE KEY-----\n", b"-----END RSA PRIVATE KEY-----", b"eyJ", b"://a:", b"@", b"ghs_" * 9,
        b"Authorization: ", b"Bearer ", b"-----", b"\xff", b"\n", b" ", b"x" * 200, b"glpat-" + b"x" * REACH_BYTES,
    ]
)  # fmt: skip


@settings(max_examples=120, deadline=None, database=None, derandomize=True)
@given(st.lists(FRAGMENTS, max_size=25), st.lists(st.integers(0, 4000), max_size=30))
def test_any_split_of_a_stream_gives_the_same(fragments: list[bytes], places: list[int]) -> None:
    stream = b"".join(fragments)
    cuts = sorted(min(place, len(stream)) for place in places)
    whole = kept([stream], SECRET)
    assert kept(split(stream, *cuts), SECRET) == whole
    assert kept(split(stream, *range(1, len(stream))), SECRET) == whole
    assert SECRET.encode() not in whole


class Counted(Redactor):
    """Counts the bytes it looks at and those in what it found, and the most it holds."""

    seen_bytes = 0
    found_bytes = 0
    most_bytes = 0

    def _give(self, until: int) -> bytes:
        self.seen_bytes += len(self._held)
        self.most_bytes = max(self.most_bytes, len(self._held))
        return super()._give(until)

    def _found(self, window: bytes, until: int) -> Iterator[_Span]:
        for span in super()._found(window, until):
            self.found_bytes += span.end - span.start
            yield span


@pytest.mark.parametrize("chunk_bytes", [1, 1000, 64 * 1024])
def test_each_byte_is_looked_at_a_few_times_whatever_the_chunks(chunk_bytes: int) -> None:
    total_bytes = 300_000
    redactor = Counted(Secrets())
    given_bytes = sum(len(redactor.feed(bytes(chunk_bytes))) for _ in range(total_bytes // chunk_bytes))
    assert given_bytes + len(redactor.finish()) == total_bytes // chunk_bytes * chunk_bytes
    assert redactor.seen_bytes < 3 * total_bytes
    assert redactor.most_bytes < 256 * 1024


HOSTILE = [
    b"eyJ", b"0meyJ", b"0mghs_", b"sk-", b"SG.", b"://", b"://a:", b"://a:" + b"@" * 2000, b"authorization: ",
    b"-----BEGIN PRIVATE KEY-----", b"-----BEGIN PRIVATE KEY-----\n" + b"- " * 30_000, b"eyJaaaaaaaaaa.", b"a\\n",
    b"eyJ" + b"a" * 60_000 + b" ", b"LS0tLS1CRUdJTiBQUklWQVRF", b"abcdabcd",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE, ids=lambda unit: unit[:12].decode())
def test_a_hostile_stream_has_each_place_tried_once_for_each_shape(unit: bytes) -> None:
    total_bytes, tries = 32_000, 0
    redactor = Counted(Secrets(values=(b"abcdabcd",)), reach_bytes=REACH_BYTES * 8)

    def count(_frame: object, event: str, function: object) -> None:
        nonlocal tries
        tries += event == "c_call" and getattr(function, "__name__", "") == "match"

    sys.setprofile(count)
    for chunk in split((unit * (total_bytes // len(unit) + 1))[:total_bytes], *range(100, total_bytes, 100)):
        redactor.feed(chunk)
    redactor.finish()
    sys.setprofile(None)
    assert redactor.seen_bytes < 3 * total_bytes
    assert tries <= 2 * total_bytes // 3
    assert redactor.found_bytes <= 3 * total_bytes


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", [b"0mghs_", b"eyJ" + b"a" * 60_000 + b" ", HOSTILE[10]], ids=lambda unit: unit[:12].decode()
)
def test_a_hostile_stream_of_any_length_comes_to_an_end_in_bounded_memory(unit: bytes) -> None:
    stream = unit * (64 * 1024 // len(unit) + 1)
    redactor = Counted(Secrets(values=(b"abcdabcd",)))
    for _ in range(16 * 1024 * 1024 // len(stream)):
        redactor.feed(stream)
    redactor.finish()
    assert redactor.most_bytes < 512 * 1024


def test_text_keeps_what_it_does_not_redact_as_it_is() -> None:
    secrets = Secrets(values=("é-hunter2".encode(),))
    assert text(secrets, "name\udcff\ud800\n") == "name\udcff\ud800\n"
    assert text(secrets, "é é-hunter2 é") == "é [redacted] é"
    assert "hunter2" not in text(secrets, "\ud800 é-hunter2")


def ran(program: str, *arguments: str, head_bytes: int = 4096, tail_bytes: int = 4096) -> Outcome:
    return run(
        [sys.executable, "-S", "-c", program, *arguments],
        cwd="/",
        env={"PATH": os.environ["PATH"]},
        limits=Limits(timeout_seconds=60, head_bytes=head_bytes, tail_bytes=tail_bytes),
        filters=lambda: Redactor(Secrets(values=(b"hunter2-hunter2",))),
    )


def test_secrets_written_byte_by_byte_to_both_streams_are_redacted_in_each() -> None:
    interleaved = """
import os
token = b"ghp_" + b"aB3dE" * 8
for one, two in zip(b"out \\xff hunter2-hunter2 " + token, b"err hunter2-hunter2 \\xff " + token):
    os.write(1, bytes([one])), os.write(2, bytes([two]))
"""
    outcome = ran(interleaved)
    assert outcome.stdout.kept == b"out \xff [redacted] [redacted: github token]"
    assert outcome.stderr.kept == b"err [redacted] \xff [redacted: github token]"
    assert (outcome.stdout.redacted, outcome.stderr.redacted, outcome.stdout.total_bytes) == (2, 2, 66)


def test_what_a_killed_command_wrote_last_is_kept() -> None:
    outcome = ran("import os; os.write(1, b'last hunter2-hunter2 words'); os.kill(os.getpid(), 9)")
    assert (outcome.ended, outcome.stdout.kept) == (Ended.SIGNALLED, b"last [redacted] words")


@pytest.mark.parametrize("lead_bytes", [95, 100, 105])
def test_a_secret_at_the_border_of_what_is_kept_leaves_no_part_of_itself(lead_bytes: int) -> None:
    flood = (
        "import sys; n = int(sys.argv[1]); print((b'.' * n + b'hunter2-hunter2').decode() * 3000 + '.' * (99 - n % 7))"
    )
    captured = ran(flood, str(lead_bytes), head_bytes=100, tail_bytes=100).stdout
    assert captured.truncated
    assert captured.redacted == 3000
    assert captured.total_bytes == (lead_bytes + 15) * 3000 + 100 - lead_bytes % 7
    assert b"unte" not in captured.kept
    assert b"hun" not in captured.kept
