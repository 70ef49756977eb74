"""MySQL and MariaDB servers: connections, server facts, table definitions, the binlog stream."""
