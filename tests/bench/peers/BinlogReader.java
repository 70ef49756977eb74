import com.github.shyiko.mysql.binlog.BinaryLogClient;
import com.github.shyiko.mysql.binlog.event.DeleteRowsEventData;
import com.github.shyiko.mysql.binlog.event.Event;
import com.github.shyiko.mysql.binlog.event.EventData;
import com.github.shyiko.mysql.binlog.event.EventHeaderV4;
import com.github.shyiko.mysql.binlog.event.RotateEventData;
import com.github.shyiko.mysql.binlog.event.TransactionPayloadEventData;
import com.github.shyiko.mysql.binlog.event.UpdateRowsEventData;
import com.github.shyiko.mysql.binlog.event.WriteRowsEventData;
import com.github.shyiko.mysql.binlog.network.SSLMode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/**
 * Reads a window of a binlog with mysql-binlog-connector-java, decodes every row, counts the row changes, and prints what it took.
 *
 * <p>The same window is read once before, which is not counted: by then the JVM has compiled what is used often. CPU seconds are those
 * of all threads, so the garbage collector and the compiler are among them. The values of the rows are thrown away.
 */
final class BinlogReader {
    private final Map<String, String> options;
    private long rows;

    private BinlogReader(Map<String, String> options) {
        this.options = options;
    }

    public static void main(String[] arguments) throws IOException {
        Map<String, String> options = new HashMap<>();
        for (String argument : arguments) {
            String[] pair = argument.split("=", 2);
            options.put(pair[0], pair[1]);
        }
        new BinlogReader(options).read(4_000_000_006L);
        double before = cpuSeconds();
        long began = System.nanoTime();
        long rows = new BinlogReader(options).read(4_000_000_007L);
        double wall = (System.nanoTime() - began) / 1e9;
        double cpu = cpuSeconds() - before;
        // The names are those of Measured in tests/bench/readers.py.
        System.out.printf(
                Locale.ROOT,
                "{\"rows\": %d, \"wall\": %.6f, \"cpu\": %.6f, \"peak_rss\": %s, \"start_cpu\": %.6f}%n",
                rows, wall, cpu, peakRss(), before);
    }

    /** Returns the number of row changes in the window. */
    private long read(long serverId) throws IOException {
        String file = options.get("--file");
        long stop = Long.parseLong(options.get("--stop"));
        BinaryLogClient client = new BinaryLogClient(
                options.get("--host"), Integer.parseInt(options.get("--port")), options.get("--user"), options.get("--password"));
        client.setServerId(serverId);
        client.setKeepAlive(false);
        client.setSSLMode(Boolean.parseBoolean(options.get("--tls")) ? SSLMode.REQUIRED : SSLMode.DISABLED);
        client.setBinlogFilename(file);
        client.setBinlogPosition(Long.parseLong(options.get("--start")));
        client.registerEventListener(event -> {
            rows += changes(event);
            EventHeaderV4 header = event.getHeader();
            if (header.getNextPosition() >= stop || leaves(file, event)) {
                disconnect(client);
            }
        });
        client.registerLifecycleListener(new FailAtOnce());
        client.connect();
        return rows;
    }

    /** Counts the rows of an event. */
    private static long changes(Event event) {
        EventData data = event.getData();
        if (data instanceof WriteRowsEventData) {
            return ((WriteRowsEventData) data).getRows().size();
        }
        if (data instanceof UpdateRowsEventData) {
            return ((UpdateRowsEventData) data).getRows().size();
        }
        if (data instanceof DeleteRowsEventData) {
            return ((DeleteRowsEventData) data).getRows().size();
        }
        if (data instanceof TransactionPayloadEventData) {
            return ((TransactionPayloadEventData) data).getUncompressedEvents().stream().mapToLong(BinlogReader::changes).sum();
        }
        return 0;
    }

    private static boolean leaves(String file, Event event) {
        EventData data = event.getData();
        return data instanceof RotateEventData && !((RotateEventData) data).getBinlogFilename().equals(file);
    }

    private static void disconnect(BinaryLogClient client) {
        try {
            client.disconnect();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static double cpuSeconds() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime() / 1e9;
    }

    /** Returns the most bytes of memory that this process had; null where the kernel does not say it. */
    private static Long peakRss() throws IOException {
        Path status = Path.of("/proc/self/status");
        if (!Files.exists(status)) {
            return null;
        }
        for (String line : Files.readAllLines(status)) {
            if (line.startsWith("VmHWM:")) {
                return Long.parseLong(line.replaceAll("\\D", "")) * 1024;
            }
        }
        return null;
    }

    /** Ends the process where the client would report what it cannot decode, and read on. */
    private static final class FailAtOnce extends BinaryLogClient.AbstractLifecycleListener {
        @Override
        public void onCommunicationFailure(BinaryLogClient client, Exception error) {
            fail(error);
        }

        @Override
        public void onEventDeserializationFailure(BinaryLogClient client, Exception error) {
            fail(error);
        }

        private static void fail(Exception error) {
            error.printStackTrace();
            System.exit(1);
        }
    }
}
