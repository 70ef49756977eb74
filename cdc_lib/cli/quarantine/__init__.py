"""``cdc quarantine``: tables that are left out of the lake until they are resumed."""
