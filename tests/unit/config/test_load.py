from __future__ import annotations

import os
import pickle
import traceback
from datetime import timedelta

import pytest
import yaml

from cdc_lib.config import SourceConfig, load, load_source, load_sources
from cdc_lib.errors import ConfigError

GOOD = """
server: {host: db.example, user: cdc, password_env: SHOP_PASSWORD}
tables: ["shop.*"]
store: {url: "file:///var/lib/cdc"}
lake: {type: jdbc, uri: "jdbc:sqlite:/lake/cat.db", warehouse: "file:///lake"}
"""


@pytest.fixture
def write(tmp_path):
    """Write a source file and return its path."""

    def _write(text=GOOD, name="shop.yaml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return _write


def refused(path, environ=None):
    """Load a file that must be refused and return the error's text."""
    with pytest.raises(ConfigError) as caught:
        load_source(path, environ or {})
    return str(caught.value)


def test_what_a_file_leaves_out_has_the_documented_defaults(write):
    """Five lines are a whole source."""
    config = load_source(write(), {})
    assert config.source == "shop"
    assert config.server.port == 3306
    assert config.tables.include == ("shop.*",)
    assert (config.start, config.schedule, config.zero_dates) == ("snapshot", "*/5 * * * *", "null")
    assert (config.invalid_text, config.legacy_temporals) == ("error", "error")
    assert config.store.path_style
    assert (config.lake.catalog, config.lake.namespace) == ("lake", "{database}")
    assert config.drain.max_window_bytes == 256 * 1024**2
    assert (config.drain.max_windows, config.drain.parallelism) == (16, 2)
    assert (config.drain.row_group_rows, config.drain.compression_level) == (131_072, 1)
    assert config.snapshot.chunk_rows == 100_000
    assert (config.merge.spark_master, config.merge.driver_memory, config.merge.parallelism) == ("local[2]", "2g", None)


def test_a_config_cannot_be_changed_and_travels_between_processes(write):
    """It is frozen, and Airflow and Spark pickle it."""
    config = load_source(write(), {})
    with pytest.raises(ValueError, match="frozen"):
        config.start = "latest"
    assert pickle.loads(pickle.dumps(config)) == config  # noqa: S301 - our own bytes


def test_defaults_are_merged_into_every_source_key_by_key(write):
    """A source's own keys win; the others of the same section stay."""
    write("drain: {max_windows: 3, parallelism: 5}\ntables: {exclude: ['shop.tmp_*']}\n", "_defaults.yaml")
    config = load_source(write(GOOD + "drain: {parallelism: 7}\n"), {})
    assert (config.drain.max_windows, config.drain.parallelism) == (3, 7)
    assert config.tables.include == ("shop.*",)
    assert config.tables.exclude == ("shop.tmp_*",)


def test_all_problems_of_a_file_are_reported_with_line_key_value_and_allowed_values(write):
    """So that the file can be fixed at once."""
    text = refused(write("server:\n  hots: x\n  port: abc\n  user: u\n  password_env: P\ntables: []\nstart: never\n"))
    assert "shop.yaml, line 2: server.hots: unknown key; did you mean 'host'? allowed: host, port" in text
    assert "shop.yaml, line 3: server.port" in text
    assert "(given 'abc'); allowed: 1 to 65535" in text
    assert "shop.yaml, line 1: server.host: is missing" in text
    assert "line 6: tables.include" in text
    assert "line 7: start: is not a start; write snapshot, earliest, latest, {timestamp: " in text
    assert "store: is missing" in text
    assert "lake: is missing" in text


def test_a_problem_in_the_defaults_names_that_file(write):
    """The reader is not sent to the wrong one."""
    write("drain: {parallelism: 0}\n", "_defaults.yaml")
    assert "_defaults.yaml, line 1: drain.parallelism" in refused(write())


@pytest.mark.parametrize("key", ["password", "Password", "passwd", "pwd"])
def test_a_password_in_a_file_is_refused_and_not_repeated(write, key):
    """The message says where it belongs."""
    text = refused(write(GOOD.replace("password_env: SHOP_PASSWORD", f"password_env: P, {key}: hunter2")))
    assert "a password is never in a file" in text
    assert "password_env" in text
    assert "connection" in text
    assert "hunter2" not in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('url: "file:///var/lib/cdc"', 'url: "s3://b/p", access_key_env: A, secret_key_env: "hunter/2"'),
        ('url: "file:///var/lib/cdc"', 'url: "s3://key:hunter/2@bucket"'),
        ("password_env: SHOP_PASSWORD", "password_env: hunter/2"),
    ],
)
def test_a_secret_under_a_wrong_key_is_not_repeated(write, old, new):
    """Somebody who puts a secret where its variable's name belongs does not find it in a log."""
    text = refused(write(GOOD.replace(old, new)))
    assert "a value that is not shown" in text
    assert "hunter" not in text


def test_a_value_of_the_environment_is_never_shown(write):
    """Only the reference is."""
    text = refused(write(GOOD + "start: ${START}\n"), {"START": "hunter2"})
    assert "${START}" in text
    assert "hunter2" not in text


def test_the_source_is_named_after_its_file(write):
    """The name is in object keys; two files cannot claim one."""
    assert "must be equal to the file's name, 'shop' (given 'other')" in refused(write("source: other\n" + GOOD))
    assert load_source(write("source: shop\n" + GOOD), {}).source == "shop"
    assert "source" in refused(write(GOOD, "no blanks.yaml"))


def test_a_log_in_comes_from_a_variable_or_from_a_connection(write):
    """With neither there is no way in; a user is needed with the variable."""
    assert "password_env: NAME" in refused(write(GOOD.replace(", password_env: SHOP_PASSWORD", "")))
    assert "needs user" in refused(write(GOOD.replace("user: cdc, ", "")))
    config = load_source(write(GOOD.replace("user: cdc, password_env: SHOP_PASSWORD", "connection: shop_db")), {})
    assert (config.server.connection, config.server.user) == ("shop_db", None)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("schedule: '* * *'", "schedule"),
        ("schedule: '60 * * * *'", "schedule"),
        ("schedule: '5-61 * * * *'", "schedule"),
        ("schedule: '@always'", "schedule"),
        ("drain: {max_window_bytes: big}", "drain.max_window_bytes"),
        ("drain: {compression_level: 23}", "drain.compression_level"),
        ("snapshot: {chunk_rows: 0}", "snapshot.chunk_rows"),
        ("merge: {driver_memory: lots}", "merge.driver_memory"),
        ("zero_dates: keep", "allowed: null, string or error"),
        ("invalid_text: ignore", "allowed: error or replace"),
        ("on_error: skip", "allowed: stop or quarantine"),
        ("legacy_temporals: micro", "allowed: error or no_fraction"),
        ("stroe: {}", "did you mean 'store'"),
    ],
)
def test_a_wrong_value_names_its_key(write, line, key):
    """One line each of what people get wrong."""
    assert key in refused(write(GOOD + line + "\n"))


@pytest.mark.parametrize("cron", ["* * * * *", "*/5 * * * *", "0 3 * * mon-fri", "0,30 1-5/2 1 jan 7", "@hourly"])
def test_cron_expressions_of_five_fields_are_schedules(write, cron):
    """Names of days and months included."""
    assert load_source(write(GOOD + f"schedule: '{cron}'\n"), {}).schedule == cron


@pytest.mark.parametrize(
    ("cron", "why"),
    [
        ("*/90 * * * *", "'*/90': a step of the minute is at most 60, because cron counts from 0 again after 59"),
        ("0 */36 * * *", "'*/36': a step of the hour is at most 24"),
        ("0 0 30 2 *", "'0 0 30 2 *' never comes: no year has such a day"),
        ("0 0 31 apr,jun *", "never comes"),
        ("0 22-25 * * *", "'22-25' is no hour"),
    ],
)
@pytest.mark.parametrize("key", ["schedule: '{}'", "verify: {{schedule: '{}'}}"])
def test_a_schedule_that_never_comes_or_means_another_is_refused(write, cron, why, key):
    assert why in refused(write(GOOD + key.format(cron) + "\n"))


def test_schedules_have_a_time_zone(write):
    """UTC, unless the file names one that exists."""
    assert load_source(write(GOOD), {}).timezone == "UTC"
    assert load_source(write(GOOD + "timezone: Europe/Berlin\n"), {}).timezone == "Europe/Berlin"
    assert "no time zone" in refused(write(GOOD + "timezone: Berlin\n"))


def test_a_source_may_be_watched_instead_of_scheduled(write):
    """The word is no cron expression; one that is nearly the word is refused."""
    assert load_source(write(GOOD + "schedule: on_change\n"), {}).schedule == "on_change"
    with pytest.raises(ConfigError, match="schedule"):
        load_source(write(GOOD + "schedule: on_changes\n"), {})


def test_no_schedule_means_runs_by_hand(write):
    """A bare null is no schedule."""
    assert load_source(write(GOOD + "schedule: null\n"), {}).schedule is None


def test_zero_dates_may_be_written_as_a_bare_null(write):
    """YAML's own null and the word mean the same."""
    assert load_source(write(GOOD + "zero_dates: null\n"), {}).zero_dates == "null"
    assert load_source(write(GOOD + "zero_dates: error\n"), {}).zero_dates == "error"
    assert load_source(write(GOOD + "zero_dates: string\n"), {}).values.zero_dates == "string"


@pytest.mark.parametrize(
    "url", ["/var/lib/cdc", "file://relative", "file:///", "http://x/y", "s3://", "s3://b/../c", "s3://b?x"]
)
def test_a_store_is_a_folder_or_a_bucket(write, url):
    """Nothing else is guessed."""
    assert "store.url" in refused(write(GOOD.replace("file:///var/lib/cdc", url)))


@pytest.mark.parametrize(("text", "hours"), [("90m", 1.5), ("36h", 36), ("14d", 14 * 24), ("0d", 0)])
def test_batches_stay_for_a_number_of_minutes_hours_or_days(write, text, hours):
    """A week where nothing is said."""
    assert load_source(write(GOOD), {}).store.keep_batches_for == timedelta(days=7)
    path = write(GOOD.replace('url: "file:///var/lib/cdc"', f'url: "file:///var/lib/cdc", keep_batches_for: {text}'))
    assert load_source(path, {}).store.keep_batches_for == timedelta(hours=hours)


@pytest.mark.parametrize("text", ["7", "-1d", "1w", "1.5h", "P7D", "true", "[7d]"])
def test_another_word_for_a_duration_is_refused_with_what_is_allowed(write, text):
    """A number without a unit would be ambiguous."""
    path = write(GOOD.replace('url: "file:///var/lib/cdc"', f'url: "file:///var/lib/cdc", keep_batches_for: {text}'))
    said = refused(path)
    assert "store.keep_batches_for" in said
    assert "90m, 36h, 7d" in said


def test_a_store_url_is_split_into_its_parts(write):
    """The parts that the stores are opened with."""
    folder = load_source(write(GOOD.replace("file:///var/lib/cdc", "file:///var/my%20cdc/")), {}).store
    assert (folder.scheme, str(folder.folder)) == ("file", "/var/my cdc")
    bucket = load_source(write(GOOD.replace("file:///var/lib/cdc", "s3://bucket/a/b/")), {}).store
    assert (bucket.scheme, bucket.bucket, bucket.prefix) == ("s3", "bucket", "a/b")


@pytest.mark.parametrize(
    "lake", ["{type: jdbc}", "{type: rest}", "{type: hive}", "{type: glue}", "{type: hadoop}", "{type: paimon}"]
)
def test_a_catalog_without_what_its_type_needs_is_refused(write, lake):
    """Before Spark starts."""
    path = write(GOOD[: GOOD.index("lake:")] + f"lake: {lake}\n")
    assert ": lake" in refused(path)


@pytest.mark.parametrize("namespace", ["{table}", "{", "x{}", "{database!r}{other}"])
def test_a_namespace_holds_nothing_but_database_and_source(write, namespace):
    """Other places in braces would fail at the first merge."""
    assert "lake.namespace" in refused(write(GOOD.replace("lake: {", f"lake: {{namespace: '{namespace}', ")))


def test_several_databases_cannot_share_one_namespace(write):
    """Their tables of one name would be one lake table."""
    one = GOOD.replace("lake: {", "lake: {namespace: 'raw_{source}', ")
    assert load_source(write(one), {}).lake.namespace_of("shop", "anything") == ("raw_shop",)
    assert "tables.include names several databases" in refused(write(one.replace('["shop.*"]', '["shop.*", "crm.*"]')))
    assert "tables.include names several databases" in refused(write(one.replace('["shop.*"]', '["shop_*.*"]')))


def test_settings_of_other_programs_are_texts(write):
    """YAML's numbers and truth values become what Spark and Iceberg read."""
    config = load_source(
        write(GOOD + "merge: {conf: {spark.sql.shuffle.partitions: 4, spark.ui.enabled: false}}\n"), {}
    )
    assert config.merge.conf == {"spark.sql.shuffle.partitions": "4", "spark.ui.enabled": "false"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tables: [*.orders]\n", "Put quotation marks around a text that begins with *"),
        ("a: 1\nb: 2\na: 3\n", "the key 'a' is given twice, on lines 1 and 3"),
        ("server: {host: x, host: y}\n", "key=server.host"),
        ("- a\n- b\n", "keys and values at its top"),
        ("a: [1, 2\n", "not YAML"),
        ("store: {url: ${X}}\n", "not YAML"),
        ("a: !!python/object:os.system {}\n", "not YAML"),
    ],
)
def test_invalid_yaml_is_reported_with_its_line(write, text, says):
    """Keys that stand twice are among it: YAML itself lets the last one win in silence."""
    said = refused(write(text))
    assert says in said
    assert "line=" in said


def test_an_empty_file_reports_the_missing_keys(write):
    """It is no special case."""
    assert "server: is missing" in refused(write(""))


def test_a_file_that_is_not_there_or_not_text_is_a_config_error(tmp_path):
    """As is everything else that is wrong with a file."""
    assert "cannot read" in refused(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"a: \xff\n")
    assert "not UTF-8" in refused(tmp_path / "latin.yaml")


def test_one_bad_file_does_not_hide_the_others(write, tmp_path):
    """Each file has its own outcome; defaults and hidden files are no sources."""
    write(GOOD, "shop.yaml")
    write("tables: []", "bad.yaml")
    write(GOOD, "crm.yml")
    write("start: snapshot", "_defaults.yaml")
    write("nothing", "notes.txt")
    write("nothing", ".hidden.yaml")
    outcomes = {one.source: (one.config, one.error) for one in load_sources(tmp_path, {})}
    assert list(outcomes) == ["bad", "crm", "shop"]
    assert outcomes["bad"][0] is None
    assert isinstance(outcomes["bad"][1], ConfigError)
    assert isinstance(outcomes["crm"][0], SourceConfig)
    assert isinstance(outcomes["shop"][0], SourceConfig)
    assert outcomes["shop"][1] is None


def test_broken_defaults_are_reported_for_every_source(write, tmp_path):
    """None of them can be read as it was meant."""
    write(GOOD, "a.yaml")
    write(GOOD, "b.yaml")
    write("start: [", "_defaults.yaml")
    assert all("_defaults.yaml" in str(one.error) for one in load_sources(tmp_path, {}))


def test_two_files_of_one_source_are_both_refused(write, tmp_path):
    """They would share cursors; names that differ only in case meet in many stores."""
    write(GOOD, "shop.yaml")
    write(GOOD, "shop.yml")
    write(GOOD, "Crm.yaml")
    write(GOOD, "crm.yaml")
    assert [one.config for one in load_sources(tmp_path, {})] == [None] * 4
    assert all("has 2 files" in str(one.error) for one in load_sources(tmp_path, {}))


def test_one_server_id_twice_on_one_server_is_refused(write, tmp_path):
    """The server would throw each out for the other."""
    text = GOOD.replace("host: db.example", "host: db.example, server_id: 7")
    write(text, "a.yaml")
    write(text, "b.yaml")
    write(text.replace("server_id: 7", "server_id: 8"), "c.yaml")
    write(text.replace("db.example", "other.example"), "d.yaml")
    loaded = load_sources(tmp_path, {})
    assert [one.config is None for one in loaded] == [True, True, False, False]
    assert "server_id is the same in a.yaml, b.yaml" in str(loaded[0].error)


def test_a_missing_folder_is_reported(tmp_path):
    """With the two ways to name another."""
    with pytest.raises(ConfigError, match="CDC_SOURCES"):
        load_sources(tmp_path / "none", {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{timestamp: 2026-11-21T06:00:00Z}", "timestamp 2026-11-21T06:00:00+00:00"),
        ('{timestamp: "2026-11-21T07:00:00+01:00"}', "timestamp 2026-11-21T06:00:00+00:00"),
        ("{position: binlog.000012:4}", "position binlog.000012:4"),
        ("{gtid: 0-1-77}", "gtid 0-1-77"),
        ("earliest", "earliest"),
    ],
)
def test_start_is_a_word_or_a_position(write, text, expected):
    """As it is in the cursor's record afterwards."""
    assert str(load_source(write(GOOD + f"start: {text}\n")).start) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{timestamp: 2026-11-21T06:00:00}", "start: timestamp is not a time with its zone"),
        ("{timestamp: yesterday}", "start: timestamp is not a time with its zone"),
        ("{position: binlog}", "start: position is not file:offset"),
        ("{time: 5}", "start: 'time' is not a start; write snapshot, earliest, latest, {timestamp:"),
        ("{gtid: 0-1-1, position: b.1:4}", "start: is not a start"),
        ("[latest]", "start: is not a start"),
    ],
)
def test_a_wrong_start_is_reported_with_the_valid_forms(write, text, message):
    """One sentence for each mistake."""
    assert message in refused(write(GOOD + f"start: {text}\n"))


def test_a_source_as_json_gives_the_same_source(write):
    """What is written out for another process is read there as it was."""
    config = load_source(
        write(GOOD.replace('url: "file:///var/lib/cdc"', 'url: "file:///var/lib/cdc", keep_batches_for: 36h')), {}
    )
    assert type(config).model_validate_json(config.model_dump_json()) == config


BOMB = "\n".join(
    ["x0: &x0 [y, y, y, y, y, y, y, y, y]"] + [f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]" for n in range(1, 9)]
)
"""A few hundred bytes that stand for 43 million values."""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("merge: &a {conf: *a}\n", "an alias contains itself"),
        ("tables: &a [[*a]]\n", "an alias contains itself"),
        (BOMB, "more than 100000 values"),
        (
            "a: &a {b: 1}\n" + "\n".join(f"k{n}: {{<<: [{', '.join(['*a'] * 5000)}]}}" for n in range(20)),
            "100000 values",
        ),
        ("tables: " + "[" * 40 + "]" * 40, "more than 32 levels deep"),
        ("tables: " + "[" * 100_000, "more than 32 levels deep"),
        ("tables: [" + "x, " * 400_000 + "]", "larger than 1048576 bytes"),
        ("start: {timestamp: 2026-02-30}\n", "looks like a date or a number"),
        (f"retention_warning: {'1' * 5000}\n", "looks like a date or a number"),
        ("retention_warning: !!int ''\n", "looks like a date or a number"),
        ("? {null: 1}\n: 2\n", "not YAML"),
        ("null: ${X}\n1: ${Y}\n", "environment variable X is not set"),
    ],
)
def test_a_file_that_would_break_its_reader_is_refused_and_hides_no_other(write, tmp_path, text, says):
    """Each of them made every source of its folder unreadable, or held its reader for minutes."""
    write(text, "bad.yaml")
    write(GOOD, "shop.yaml")
    bad, shop = load_sources(tmp_path, {})
    assert says in str(bad.error)
    assert shop.config is not None


def test_a_named_pipe_among_the_sources_does_not_block(write, tmp_path):
    """Reading it would wait for a writer that never comes."""
    os.mkfifo(tmp_path / "pipe.yaml")
    write(GOOD, "shop.yaml")
    pipe, shop = load_sources(tmp_path, {})
    assert "not a file" in str(pipe.error)
    assert shop.config is not None


def test_aliases_that_write_out_little_are_taken(write):
    """An alias is a way to say a thing once."""
    write("", "_defaults.yaml")
    text = (
        GOOD + "columns:\n  - {tables: shop.a, exclude: &hidden [note, memo]}\n  - {tables: shop.b, exclude: *hidden}\n"
    )
    assert load_source(write(text), {}).columns[1].exclude == ("note", "memo")


def test_a_defect_of_ours_in_one_file_hides_no_other(write, tmp_path, monkeypatch):
    """Not everything that a file may do is known; what it says is not repeated."""
    write(GOOD, "bad.yaml")
    write(GOOD, "shop.yaml")
    real = load.load_source

    def breaks(path, environ):
        if path.stem == "bad":
            raise ZeroDivisionError("hunter2")
        return real(path, environ)

    monkeypatch.setattr(load, "load_source", breaks)
    bad, shop = load_sources(tmp_path, {})
    assert "ZeroDivisionError" in str(bad.error)
    assert "hunter2" not in str(bad.error)
    assert shop.config is not None


@pytest.mark.parametrize(
    "wrong",
    [
        GOOD.replace("password_env: SHOP_PASSWORD", "password_env: P, pasword: hunter2"),
        GOOD.replace("password_env: SHOP_PASSWORD", "password_env: P, Passwort: hunter2"),
        GOOD.replace("password_env: SHOP_PASSWORD", "password_env: P, kennwort: hunter2"),
        GOOD.replace("password_env: SHOP_PASSWORD", "password_env: P, login: {user: x, key: hunter2}"),
        GOOD.replace("password_env: SHOP_PASSWORD", "password_env: [hunter2]"),
        GOOD.replace("password_env: SHOP_PASSWORD", "password_env: *hunter2"),
        GOOD.replace("password_env: SHOP_PASSWORD", "password_env: !hunter2 x"),
        GOOD.replace("password_env: SHOP_PASSWORD", "password_env: 'hunter2"),
        GOOD + "mask_key_env: hunter2/x\n",
        GOOD + "start: {position: 'password=hunter2'}\n",
        GOOD + "drain: {token: hunter2}\nverify: {wait: [{a: hunter2}]}\n",
        GOOD + "merge: {conf: {spark.hadoop.fs.s3a.secret.key: [hunter2]}}\n",
        GOOD.replace('warehouse: "file:///lake"', 'warehouse: "file:///lake", properties: {jdbc.password: [hunter2]}'),
        GOOD.replace('warehouse: "file:///lake"', 'warehouse: "file:///lake", properties: [jdbc.password, hunter2]'),
        GOOD.replace('"jdbc:sqlite:/lake/cat.db"', "{user: x, hunter2: hunter2}"),
        GOOD.replace("server: {", "server: {port: 'x;pwd=hunter2', "),
        GOOD.replace("server: {host: db.example, user: cdc, password_env: SHOP_PASSWORD}", "server: 'cdc:hunter2@db'"),
    ],
)
def test_no_message_repeats_what_may_be_a_secret(write, wrong):
    """Airflow shows import errors to everybody, and keeps them; the causes of an error are shown with it."""
    path = write(wrong)
    with pytest.raises(ConfigError) as caught:
        load_source(path, {})
    shown = "".join(traceback.format_exception(caught.value))
    assert "hunter2" not in shown.replace("hunter2: unknown", "").replace("uri.hunter2", "")


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("store: {url: file:///data/../etc}", "has no .. in it"),
        ("store: {url: 'file:///data/%2e%2E/etc'}", "has no .. in it"),
        ("store: {url: s3://bucket/a/../b}", "has no .. in it"),
        ("lake: {type: hadoop, warehouse: 'file:///lake/../etc'}", "has no .. in it"),
        ("lake: {type: hadoop, warehouse: '../lake'}", "has no .. in it"),
        ("lake: {type: hadoop, warehouse: 'file:///lake', namespace: '..'}", "names with dots between them"),
        ("lake: {type: hadoop, warehouse: 'file:///lake', namespace: 'raw..{database}'}", "names with dots between"),
        ("lake: {type: hadoop, warehouse: 'file:///lake', namespace: '../{database}'}", "names with dots between"),
    ],
)
def test_no_setting_may_point_to_a_parent_folder(write, section, message):
    """One error that says which setting; where a name of the source leads is not for the file to allow."""
    name = section.partition(":")[0]
    plain = {**yaml.safe_load(GOOD), **yaml.safe_load(section)}
    with pytest.raises(ConfigError, match=message) as error:
        load_source(write(yaml.safe_dump(plain)), {})
    assert name in str(error.value)


def test_dots_of_a_name_are_no_levels_of_the_namespace(write):
    """Those of the template are."""
    plain = {
        **yaml.safe_load(GOOD),
        "lake": {"type": "hadoop", "warehouse": "file:///l", "namespace": "raw.{database}"},
    }
    assert load_source(write(yaml.safe_dump(plain)), {}).lake.namespace_of("shop", "a.b") == ("raw", "a.b")
