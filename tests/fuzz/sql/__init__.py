"""Generated SQL against the whole product: ``./dev fuzz sql``.

A program is a list of parts of statements over a database of its own. After each part the product runs, and every row of the lake is
compared with what the server shows. A program that fails is run again alone and made smaller (:mod:`tests.fuzz.sql.shrink`), and printed
as a case file, which ``--replay`` runs.
"""
