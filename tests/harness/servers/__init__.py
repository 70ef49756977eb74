"""Real servers on this machine without containers, for the tests, the demo and the benchmarks.

Each is a context manager: inside it the server is ready, and after it no process of the server runs. What has to be
downloaded is downloaded once into the cache folder (``CDC_CACHE``).
"""

from tests.harness.servers.mariadb import MariaDbServer
from tests.harness.servers.mysql import MySqlServer
from tests.harness.servers.process import ServerDidNotStart
from tests.harness.servers.s3 import S3Server
from tests.harness.servers.sql import SqlServer

__all__ = ["MariaDbServer", "MySqlServer", "S3Server", "ServerDidNotStart", "SqlServer"]
