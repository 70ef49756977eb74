"""MariaDB's own test suites as a workload: ``./dev fuzz mtr``. Nothing of them is part of this project; Debian has them as packages."""
