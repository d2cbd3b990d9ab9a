package contender

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/sqllock/sqllock/dev/bench/internal/durable"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// pgbench is PostgreSQL's own load generator, with the two statements: the limit of the server
// with a client written in C.
func pgbench() []Contender {
	cannot := make(map[string]string)
	for _, load := range []string{"hot key", "hand-off", "waiters", "wire"} {
		cannot[load] = "pgbench only repeats statements"
	}
	return []Contender{{
		Name:     "pgbench",
		Library:  "PostgreSQL's pgbench",
		Version:  "as the server",
		Database: durable.Postgres,
		Settings: "-M prepared; one connection for each worker",
		Quick:    true,
		Cannot:   cannot,
		Prepare:  func(ctx context.Context, at Place) error { return postgresPQ.with(ctx, at, postgresPQ.migrate) },
		Open:     func(_ context.Context, at Place) (Session, error) { return openPgbench(at) },
	}}
}

type pgbenchSession struct {
	dsn, dir string
	workers  int
}

func openPgbench(at Place) (Session, error) {
	names, err := dialect.NamesFor("")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "sqllock-pgbench-")
	if err != nil {
		return nil, err
	}
	texts := postgresPQ.dialect().Statements(dialect.Spring7, names)
	// A client's number is its key and its holder.
	fill := strings.NewReplacer(":region", "'DEFAULT'", ":key", "CAST(:client_id AS TEXT)", ":holder", "CAST(:client_id AS TEXT)",
		":left", "10000000", ":ttl", "10000000")
	script := fill.Replace(oneLine(texts.Acquire) + ";\n" + oneLine(texts.Delete) + ";\n")
	s := &pgbenchSession{dsn: at.DSN, dir: dir}
	return s, os.WriteFile(s.script(), []byte(script), 0o600)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func (s *pgbenchSession) script() string { return filepath.Join(s.dir, "pair.sql") }

func (*pgbenchSession) Lock(context.Context, string) (Unlock, error) { return nil, ErrCannot }

func (s *pgbenchSession) Connections() int { return s.workers }

func (s *pgbenchSession) Close() error { return os.RemoveAll(s.dir) }

var (
	pgbenchRate    = regexp.MustCompile(`tps = ([0-9.]+) \(without initial connection time\)`)
	pgbenchLatency = regexp.MustCompile(`latency average = ([0-9.]+) ms`)
	errPgbench     = errors.New("unexpected output of pgbench")
	// Then there is no rate.
	pgbenchNothing = regexp.MustCompile(`transactions actually processed: 0\n`)
)

// Run measures whole seconds, since pgbench supports no shorter time; twice as long if a busy
// machine has done nothing in that time.
func (s *pgbenchSession) Run(ctx context.Context, workers int, _, measure time.Duration) (Outcome, error) {
	s.workers = workers
	var output []byte
	bin, err := server.EnsurePostgres(ctx)
	if err != nil {
		return Outcome{}, err
	}
	for seconds, longest := int(max(1, math.Round(measure.Seconds()))), 64; ; seconds *= 2 {
		//nolint:gosec // the command is fixed
		cmd := exec.CommandContext(ctx, filepath.Join(bin, "pgbench"), "-n", "-M", "prepared",
			"-c", strconv.Itoa(workers), "-j", strconv.Itoa(min(workers, 2)), "-T", strconv.Itoa(seconds), "-f", s.script(), s.dsn)
		if output, err = cmd.CombinedOutput(); err != nil {
			return Outcome{}, fmt.Errorf("pgbench: %w: %s", err, output)
		}
		if seconds >= longest || !pgbenchNothing.Match(output) {
			break
		}
	}
	rate, latency := pgbenchRate.FindSubmatch(output), pgbenchLatency.FindSubmatch(output)
	if rate == nil || latency == nil {
		return Outcome{}, fmt.Errorf("%w: %s", errPgbench, output)
	}
	pairs, rateErr := strconv.ParseFloat(string(rate[1]), 64)
	mean, latencyErr := strconv.ParseFloat(string(latency[1]), 64)
	return Outcome{PairsPerSecond: pairs, Mean: time.Duration(mean * float64(time.Millisecond))}, errors.Join(rateErr, latencyErr)
}
