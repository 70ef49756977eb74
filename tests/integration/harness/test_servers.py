"""The servers of the harness are real, and configured as the tests need."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pymysql
import pytest
from botocore.exceptions import ClientError

from tests.harness.servers import MariaDbServer, MySqlServer, S3Server, ServerDidNotStart, SqlServer
from tests.harness.servers.process import ServerProcess
from tests.harness.servers.versions import in_use


def test_the_mysql_server_has_the_tested_version(mysql_server):
    """When Debian updates it, tests/harness/servers/versions.py and the support matrix must name the new version."""
    assert mysql_server.version.startswith(f"{in_use('mysql')}.")
    assert "MariaDB" not in mysql_server.version


def test_the_mariadb_server_has_the_tested_version(mariadb_server):
    assert mariadb_server.version.startswith(f"{in_use('mariadb')}.")
    assert "MariaDB" in mariadb_server.version


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("log_bin", "ON"),
        ("binlog_format", "ROW"),
        ("binlog_row_image", "FULL"),
        ("binlog_row_metadata", "FULL"),
        ("binlog_checksum", "CRC32"),
    ],
)
def test_rows_are_logged_with_full_images_and_metadata(any_server: SqlServer, variable, value):
    assert any_server.variable(variable) == value


def test_mysql_writes_gtids(mysql_server):
    assert mysql_server.variable("gtid_mode") == "ON"


def test_making_the_users_wrote_nothing_to_the_binlog(any_server: SqlServer):
    first_file = any_server.execute("SHOW BINARY LOGS")[0][0]
    statements = [row[5] for row in any_server.execute(f"SHOW BINLOG EVENTS IN '{first_file}' LIMIT 20")]
    assert not [statement for statement in statements if "USER" in statement]


def test_an_inserted_row_is_a_row_event_in_the_binlog(any_server: SqlServer, database):
    any_server.execute("FLUSH BINARY LOGS")  # the file before may hold statements that are no UTF-8
    any_server.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=database)
    any_server.execute("INSERT INTO t VALUES (1)", database=database)
    last_file = any_server.execute("SHOW BINARY LOGS")[-1][0]
    kinds = [row[2] for row in any_server.execute(f"SHOW BINLOG EVENTS IN '{last_file}'")]
    assert "Table_map" in kinds
    assert any(kind.startswith("Write_rows") for kind in kinds)


def test_the_capture_user_may_read_tables_and_binlogs_but_not_write(any_server: SqlServer, database):
    any_server.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=database)
    with any_server.connect(any_server.cdc_user, any_server.cdc_password, database=database) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT * FROM t")
        cursor.execute("SHOW BINARY LOGS")
        with pytest.raises(pymysql.err.OperationalError, match="denied"):
            cursor.execute("INSERT INTO t VALUES (1)")


def test_the_capture_user_cannot_log_in_without_its_password(any_server: SqlServer):
    with pytest.raises(pymysql.err.OperationalError, match="denied"):
        any_server.connect(any_server.cdc_user, "wrong")


def test_the_capture_user_can_log_in_over_tls(any_server: SqlServer):
    password = any_server.cdc_password
    with any_server.connect(any_server.cdc_user, password, ssl_verify_cert=False, ssl={"check_hostname": False}) as tls:
        cursor = tls.cursor()
        cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
        assert cursor.fetchone()[1] != ""


def test_root_can_log_in_to_a_server_that_requires_tls():
    """Its connections to other servers are not encrypted."""
    with MariaDbServer(settings={"require-secure-transport": "ON"}) as server:
        assert server.execute("SHOW STATUS LIKE 'Ssl_cipher'")[0][1] != ""


def test_there_are_no_anonymous_users(any_server: SqlServer):
    assert any_server.execute("SELECT COUNT(*) FROM mysql.user WHERE user = ''") == [(0,)]


def test_mysqls_own_binlog_reader_runs(mysql_server: MySqlServer):
    done = subprocess.run([*mysql_server.client_command("mysqlbinlog"), "--version"], capture_output=True, text=True)
    assert "mysqlbinlog" in done.stdout
    assert done.returncode == 0


def test_an_object_is_created_only_once(s3_server: S3Server, bucket):
    client = s3_server.client()
    client.put_object(Bucket=bucket, Key="manifest.json", Body=b"first", IfNoneMatch="*")
    with pytest.raises(ClientError) as refused:
        client.put_object(Bucket=bucket, Key="manifest.json", Body=b"second", IfNoneMatch="*")
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 412
    assert client.get_object(Bucket=bucket, Key="manifest.json")["Body"].read() == b"first"


def test_an_object_is_replaced_only_over_the_version_that_was_read(s3_server: S3Server, bucket):
    client = s3_server.client()
    read = client.put_object(Bucket=bucket, Key="cursor.json", Body=b"one")["ETag"]
    client.put_object(Bucket=bucket, Key="cursor.json", Body=b"two", IfMatch=read)
    with pytest.raises(ClientError) as refused:
        client.put_object(Bucket=bucket, Key="cursor.json", Body=b"three", IfMatch=read)
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 412
    assert client.get_object(Bucket=bucket, Key="cursor.json")["Body"].read() == b"two"


def test_a_multipart_object_is_created_only_once(s3_server: S3Server, bucket):
    client = s3_server.client()
    where = {"Bucket": bucket, "Key": "part-0.parquet"}
    client.put_object(**where, Body=b"already there")
    upload = client.create_multipart_upload(**where)["UploadId"]
    etag = client.upload_part(**where, UploadId=upload, PartNumber=1, Body=b"late")["ETag"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
    with pytest.raises(ClientError) as refused:
        client.complete_multipart_upload(**where, UploadId=upload, MultipartUpload=parts, IfNoneMatch="*")
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 412


def test_wrong_credentials_cannot_read_the_bucket(s3_server: S3Server, bucket):
    stranger = S3Server(port=s3_server.port)
    stranger.access_key = s3_server.access_key
    with pytest.raises(ClientError) as refused:
        stranger.client().list_objects_v2(Bucket=bucket)
    stranger.stop()
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


def test_a_server_that_fails_to_start_shows_the_end_of_its_log(tmp_path: Path):
    process = ServerProcess("broken", ["sh", "-c", "echo no such option; exit 3"], tmp_path / "log")
    with pytest.raises(ServerDidNotStart, match=r"broken ended with 3(?s:.*)no such option"):
        process.wait_until_ready(lambda: False)
    process.stop()


def test_stopping_a_server_ends_its_child_processes(tmp_path: Path):
    pids = tmp_path / "pids"
    command = ["sh", "-c", f"sleep 60 & echo $! > {pids}; wait"]
    process = ServerProcess("parent", command, tmp_path / "log")
    process.wait_until_ready(lambda: pids.exists() and pids.read_text().strip() != "")
    process.stop()
    assert not _runs(int(pids.read_text()))


def test_a_server_ends_when_its_starter_is_killed(tmp_path: Path):
    pids = tmp_path / "pids"
    starter = (
        "import pathlib, time; from tests.harness.servers.process import ServerProcess; "
        f"ServerProcess('orphan', ['sh', '-c', 'echo $$ > {pids}; exec sleep 60'], pathlib.Path({str(tmp_path / 'log')!r}));"
        "time.sleep(60)"
    )
    python = subprocess.Popen([sys.executable, "-c", starter], cwd=Path(__file__).parents[3])
    deadline = time.monotonic() + 30
    while not (pids.exists() and pids.read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.05)
    python.kill()
    python.wait()
    while _runs(int(pids.read_text())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(int(pids.read_text()))


def _runs(pid: int) -> bool:
    """Return whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
