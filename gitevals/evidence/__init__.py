"""Records in refs: the only package that knows both where evidence lies in git and what it says."""
