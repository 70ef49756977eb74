// Reads a window of a binlog with go-mysql's BinlogSyncer, decodes every row, counts the row changes, and prints what it took.
//
// A small window of the same table is read first, which is not counted. The values of the rows are thrown away.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"log"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

// firstEvent is the offset of the first event in a binlog file.
const firstEvent = 4

// measured has the fields of Measured in tests/bench/readers.py.
type measured struct {
	Rows     int     `json:"rows"`
	Wall     float64 `json:"wall"`
	CPU      float64 `json:"cpu"`
	PeakRSS  *int    `json:"peak_rss"`
	StartCPU float64 `json:"start_cpu"`
}

func main() {
	var config replication.BinlogSyncerConfig
	flag.StringVar(&config.Flavor, "flavor", "", "mysql or mariadb")
	flag.StringVar(&config.Host, "host", "", "of the server")
	port := flag.Uint("port", 0, "of the server")
	flag.StringVar(&config.User, "user", "", "who may read the binlog")
	flag.StringVar(&config.Password, "password", "", "of the user")
	encrypt := flag.Bool("tls", false, "encrypt the connection")
	file := flag.String("file", "", "binlog file")
	start := flag.Uint("start", firstEvent, "offset of its first event")
	stop := flag.Uint("stop", 0, "offset after its last event")
	warmFile := flag.String("warm-file", "", "binlog file to warm up with")
	warmStop := flag.Uint("warm-stop", 0, "offset after its last event")
	flag.Parse()
	config.Port = uint16(*port)
	config.Logger = slog.New(slog.DiscardHandler)
	config.DisableRetrySync = true
	if *encrypt {
		config.TLSConfig = &tls.Config{InsecureSkipVerify: true} // the server's certificate is its own
	}

	config.ServerID = 4_000_000_004
	if _, err := read(config, *warmFile, firstEvent, uint32(*warmStop)); err != nil {
		log.Fatalf("warming up: %v", err)
	}
	config.ServerID = 4_000_000_005
	before, began := cpuSeconds(), time.Now()
	rows, err := read(config, *file, uint32(*start), uint32(*stop))
	wall, after := time.Since(began).Seconds(), cpuSeconds()
	if err != nil {
		log.Fatal(err)
	}
	result := measured{rows, wall, after - before, peakRSS(), before}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		log.Fatal(err)
	}
}

// read returns the number of row changes between two offsets of a binlog file.
func read(config replication.BinlogSyncerConfig, file string, start, stop uint32) (int, error) {
	syncer := replication.NewBinlogSyncer(config)
	stream, err := syncer.StartSync(mysql.Position{Name: file, Pos: start})
	if err != nil {
		return 0, err
	}
	rows := 0
	for {
		event, err := stream.GetEvent(context.Background())
		if err != nil {
			return rows, err
		}
		rows += changes(event)
		rotate, rotates := event.Event.(*replication.RotateEvent)
		if event.Header.LogPos >= stop || rotates && string(rotate.NextLogName) != file {
			return rows, nil
		}
	}
}

// changes counts the rows of an event; an update has two images of each.
func changes(event *replication.BinlogEvent) int {
	switch decoded := event.Event.(type) {
	case *replication.RowsEvent:
		if decoded.Type() == replication.EnumRowsEventTypeUpdate {
			return len(decoded.Rows) / 2
		}
		return len(decoded.Rows)
	case *replication.TransactionPayloadEvent:
		rows := 0
		for _, inner := range decoded.Events {
			rows += changes(inner)
		}
		return rows
	}
	return 0
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// peakRSS returns the most bytes of memory that this process had; nil where the kernel does not say it.
func peakRSS() *int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil
	}
	found := regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindSubmatch(status)
	if found == nil {
		return nil
	}
	kib, err := strconv.Atoi(string(found[1]))
	if err != nil {
		return nil
	}
	size := kib * 1024
	return &size
}
