"""Contracts: what a base says a task's examination is, what was frozen, and how the two stand to each other."""
