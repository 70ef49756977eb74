"""Broken bytes against the decoder: whatever they are, each ends in rows or in an error of the tree.

``python -m tests.fuzz --cases 10000000`` (or ``./dev fuzz --cases 10000000``) runs every target in a process of its own, whose
kernels are compiled with bounds checking, into a cache of their own. A case is a recorded sample with a few changes, made from
the seed and the case's number alone, in an array of exactly its size: one byte read or written outside is an IndexError.
A process that crashes, or that says nothing for two minutes, is a fault as well. ``--only``, ``--seed`` and ``--first`` with
``--cases 1`` run one case again.
"""
