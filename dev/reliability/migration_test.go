//go:build linux

package reliability

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dev/reliability/clusters/history"
	"github.com/sqllock/sqllock/dev/reliability/clusters/workload"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/child"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/migrations"
)

// migratedTTL is the time-to-live of the leases beside migrations.
// real time: the checker judges what was held, whether or not leases end early.
const migratedTTL = time.Second

// TestMigrationsBesideProcesses has processes compete for locks of all kinds while others migrate the tables up and
// down again and again, some of which are killed in the middle. After each migration some of the processes are killed
// and replaced. The others go on with the columns that they have found at their start: their leases must end in time,
// and they must neither acquire nor delete what is not theirs.
func TestMigrationsBesideProcesses(t *testing.T) {
	inParallel(t)
	oracle := cell{"MySQL", "mysql", server.OracleMySQL, dbtest.OracleMySQL, nil, nil, nil, dialect.MySQL}
	each(t, append(servers[1:3:3], oracle), func(t *testing.T, _ int, c cell) { // pgx, MariaDB, and MySQL
		b := c.newBase(t)
		target := workload.Target{Driver: c.driver, DSNs: []string{b.dsn}}
		must(t, workload.Prepare(t.Context(), target))
		config := workload.Standard(target, rand.Uint64(), t.TempDir()) //nolint:gosec // not a secret
		config.TTL, config.MaxHold, config.Stay, config.Kill = migratedTTL, 6*migratedTTL, 6*migratedTTL, false
		m := &migrated{fleet: startFleet(t, config), c: c, db: b.db}
		m.awaitAll(4, 0)
		for range size(1, 20) {
			for _, version := range m.journey() {
				m.migrate(version)
			}
		}
		t.Logf("%d migrations, %d of them killed; %d processes killed, %d stopped", m.all, m.killed, m.Killed, m.Stopped)
		m.end(target)
		m.drewNothing()
	})
}

// A migrated is a fleet whose tables are migrated.
type migrated struct {
	*fleet

	c           cell
	db          *sqlx.DB
	all, killed int // migrations
	// fenceless are the times without a fence.
	fenceless []span
}

// A span is of [history.Now].
type span struct{ from, to int64 }

// journey returns versions to which the tables are migrated, in this order: each step between those that have a lock table
// is made in both directions.
func (m *migrated) journey() []uint {
	between := []uint{2, 3, 4}
	rand.Shuffle(len(between), func(i, j int) { between[i], between[j] = between[j], between[i] })
	return append(between, 1, 4)
}

// migrate migrates to a version, and lets the processes go on there.
func (m *migrated) migrate(version uint) {
	m.t.Helper()
	for range 1 + rand.N(2) {
		m.kill(version)
	}
	old := rand.N(m.config.Processes) // goes on, and is stopped for a while
	resumed := make(chan struct{})
	go func() {
		defer close(resumed)
		m.Suspend(m.t.Context(), old, rand.N(2*migratedTTL))
	}()
	m.complete(version)
	since := history.Now()
	for i := range m.config.Processes - 1 { // one at least is new
		if i == 0 || rand.N(2) == 0 {
			must(m.t, m.Replace((old+1+i)%m.config.Processes, m.config.Target))
		}
	}
	<-resumed
	if version == 1 {
		m.withoutFence()
		return
	}
	m.awaitAll(version, since)
}

// awaitAll waits until each lock has been acquired since then.
func (m *migrated) awaitAll(version uint, since int64) {
	m.t.Helper()
	if missing := m.AwaitAll(m.t.Context(), since, promptly); len(missing) > 0 {
		m.t.Fatalf("at version %d nobody acquires %q", version, missing)
	}
}

// withoutFence has processes go on without a fence for a while, and has a new one begin above all tokens that were given.
func (m *migrated) withoutFence() {
	m.t.Helper()
	without := span{from: history.Now()}
	// real time: the history says what was asked for and answered in this time, however long it is.
	pause(m.t.Context(), migratedTTL)
	without.to = history.Now()
	m.fenceless = append(m.fenceless, without)
	const enough = 1_000_000
	m.db.MustExecContext(m.t.Context(), fmt.Sprintf(map[string]string{
		server.Postgres:    "CREATE SEQUENCE INT_LOCK_FENCE START WITH %d",
		server.MySQL:       "CREATE SEQUENCE INT_LOCK_FENCE START WITH %d NOCACHE ENGINE=InnoDB",
		server.OracleMySQL: "CREATE TABLE INT_LOCK_FENCE (ID BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB AUTO_INCREMENT = %d",
	}[m.c.kind], len(m.fenceless)*enough))
}

// drewNothing checks that no lock was acquired that was asked for, and answered, while there was no fence. A downgrade
// draws no token, and takes no time in a history.
func (m *migrated) drewNothing() {
	m.t.Helper()
	for _, e := range check.Value(history.Read(m.config.History))(m.t) {
		inside := func(s span) bool { return e.From > s.from && e.To < s.to }
		if e.Op == history.Acquire && e.Lease != "" && e.From < e.To && slices.ContainsFunc(m.fenceless, inside) {
			m.t.Errorf("acquired without a fence: %+v", e)
		}
	}
}

// kill has a process begin to migrate, and kills it at some moment.
func (m *migrated) kill(version uint) {
	m.t.Helper()
	p := m.begin(version)
	p.Want("begins")
	// real time: any moment is a good one to kill a migration.
	pause(m.t.Context(), rand.N(100*time.Millisecond))
	if !p.HasEnded() {
		m.killed++
	}
	p.Kill()
}

// complete migrates until the tables have the version. While a transaction uses the table, or another process
// migrates, it is refused; a table without EXPIRED_AFTER, as a migration that was killed may leave it on MySQL, goes
// to version 2 first, as the error says.
func (m *migrated) complete(version uint) {
	m.t.Helper()
	for limit := time.Now().Add(promptly); ; {
		p := m.begin(version)
		p.Want("begins")
		switch said := p.Next(); {
		case said == "done":
			return
		case time.Now().After(limit):
			m.t.Fatalf("to version %d: %s", version, said)
		case said == "busy":
		case said == "state" && m.c.driver == "mysql" && version > 2:
			m.complete(2)
		default:
			m.t.Fatalf("to version %d: %s", version, said)
		}
	}
}

// The variables of a process that migrates.
const (
	migrateDriver  = "SQLLOCK_MIGRATE_DRIVER"
	migrateDSN     = "SQLLOCK_MIGRATE_DSN"
	migrateVersion = "SQLLOCK_MIGRATE_VERSION"
)

// begin starts a process that migrates.
func (m *migrated) begin(version uint) *child.Process {
	m.t.Helper()
	m.all++
	return child.Start(m.t, "migrate", migrateDriver+"="+m.c.driver, migrateDSN+"="+m.config.Target.DSNs[0], migrateVersion+"="+strconv.Itoa(int(version))) //nolint:gosec // a small number
}

// migrate is what a process does that migrates: it says how that ended.
func migrate(ctx context.Context, _ <-chan string) error {
	target := workload.Target{Driver: os.Getenv(migrateDriver), DSNs: []string{os.Getenv(migrateDSN)}}
	version, err := strconv.ParseUint(os.Getenv(migrateVersion), 10, 32)
	if err != nil {
		return err
	}
	db, err := target.Open(0, 1)
	if err != nil {
		return err
	}
	if err := db.PingContext(ctx); err != nil {
		return err
	}
	fmt.Println("begins")
	// real time: it is that of the processes' leases, which the checker judges.
	err = migrations.Goto(ctx, db.DB, target.Dialect(), uint(version), &migrations.Options{TTL: migratedTTL, Force: true})
	switch {
	case err == nil:
		fmt.Println("done")
	case errors.Is(err, migrations.ErrBusy):
		fmt.Println("busy")
	case errors.Is(err, migrations.ErrState):
		fmt.Println("state")
	default:
		fmt.Println(strings.ReplaceAll(err.Error(), "\n", " "))
	}
	return nil
}
