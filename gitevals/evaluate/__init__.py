"""Contract + subject → evaluation: commands run in a scratch repository, findings drawn from what they did."""
