"""How old evidence may be."""

from datetime import UTC, datetime

AHEAD_SECONDS = 24 * 3600  # how far another machine's clock may be ahead before its word on time counts for nothing


def is_expired(finished: str, now_seconds: float, max_age_seconds: int) -> bool:
    """Whether what ``finished`` (RFC 3339) is older than ``max_age_seconds`` (0: any age); ``now_seconds`` since 1970.

    A time that cannot be read, or that lies more than a day ahead, is no proof of youth.
    """
    if not max_age_seconds:
        return False
    try:
        then = datetime.fromisoformat(finished)
    except ValueError:
        return True
    age_seconds = now_seconds - then.replace(tzinfo=then.tzinfo or UTC).timestamp()
    return age_seconds > max_age_seconds or age_seconds < -AHEAD_SECONDS
