package doctor

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/probe"
	"github.com/sqllock/sqllock/internal/session/sqlitedriver"
	"github.com/sqllock/sqllock/internal/sqltext"
)

func (e *examination) checkServer(ctx context.Context) []finding {
	var version string
	if err := e.DB.GetContext(ctx, &version, e.statements.Version); err != nil {
		return []finding{{noteworthy, "server", "its version is not known: " + exit.Text(err), "check that it is PostgreSQL, MySQL, MariaDB or SQLite"}}
	}
	e.engine = probe.EngineOf(version)
	return []finding{serverFinding(version, e.Dialect, e.flags.Unverified)}
}

func serverFinding(version string, d dialect.Dialect, unverified bool) finding {
	engine := probe.EngineOf(version)
	engine.Refusal = engine.RefusalOf(sqltext.Of(d))
	switch name := nameOf(engine, version); {
	case engine.Refusal != "" && unverified:
		return finding{noteworthy, "server", name + ", which sqllock does not support: " + engine.Refusal, "--unverified permits it: several may hold a lock at once"}
	case engine.Refusal != "":
		return finding{broken, "server", name + ", which sqllock does not support: " + engine.Refusal, connect.UnsupportedHint}
	case olderThan(version, engine.Oldest):
		return finding{noteworthy, "server", name, "sqllock supports version " + engine.Oldest + " and later: upgrade the server"}
	default:
		return finding{good, "server", name, ""}
	}
}

// nameOf returns the name and version of a server.
func nameOf(engine probe.Engine, version string) string {
	number, _, _ := strings.Cut(version, " ")
	if _, own, ok := strings.Cut(number, "-TiDB-v"); ok {
		number = own
	}
	switch own := vitessVersion.FindStringSubmatch(version); {
	case engine.Refusal != "":
		return engine.Name + " (" + version + ")"
	case own != nil:
		number, _, _ = strings.Cut(number, "-")
		return engine.Name + " " + own[1] + " (MySQL " + number + ")"
	case engine.Dialect != "mysql":
		version, _, _ = strings.Cut(version, " on ") // PostgreSQL's machine and compiler follow
		return version
	case engine.Name != "MySQL":
		number, _, _ = strings.Cut(number, "-")
	}
	return engine.Name + " " + number
}

// vitessVersion matches the comment of a vtgate, which stands beside the version of MySQL.
var vitessVersion = regexp.MustCompile(`Version: (\S+) \(Git`)

var numberForm = regexp.MustCompile(`(\d+)(?:\.(\d+))?`)

// olderThan reports whether the first number in version is lower than oldest. It returns
// false for one without numbers.
func olderThan(version, oldest string) bool {
	have, want := numberForm.FindStringSubmatch(version), numberForm.FindStringSubmatch(oldest)
	if have == nil || want == nil {
		return false
	}
	for i := 1; i <= 2; i++ {
		h, _ := strconv.Atoi(have[i])
		w, _ := strconv.Atoi(want[i])
		if h != w {
			return h < w
		}
	}
	return false
}

func (e *examination) checkWrites(ctx context.Context) []finding {
	var readOnly int
	switch err := e.DB.GetContext(ctx, &readOnly, e.statements.ReadOnly); {
	case err != nil:
		return []finding{{noteworthy, "writes", "not known whether they are accepted: " + exit.Text(err), "the round trip below tests it"}}
	case readOnly != 0:
		return []finding{e.readOnlyFinding()}
	default:
		return []finding{{good, "writes", "not read-only", ""}}
	}
}

// readOnlyFinding returns the finding for a database that rejects writes.
func (e *examination) readOnlyFinding() finding {
	if e.Dialect == dialect.SQLite() {
		return finding{broken, "writes", "rejected: the file is opened read-only", "give " + sqlitedriver.WritableHint + ", without parameters like mode=ro: to acquire a lock is to write a row"}
	}
	return finding{broken, "writes", "rejected: the server is a replica or set to read-only", "give the DSN of the primary server: to acquire a lock is to write a row"}
}

// checkJournal checks that the journal mode of SQLite is WAL, in which readers and writers do not
// block each other.
func (e *examination) checkJournal(ctx context.Context) []finding {
	if e.Dialect != dialect.SQLite() {
		return nil
	}
	var mode string
	if err := e.DB.GetContext(ctx, &mode, "PRAGMA journal_mode"); err != nil {
		return []finding{{noteworthy, "journal", "its mode is not known: " + exit.Text(err), "check that the file is an SQLite database"}}
	}
	if mode != "wal" {
		return []finding{{noteworthy, "journal", "mode " + mode + ": programs that list locks block programs that acquire them", "run PRAGMA journal_mode = WAL once in the database"}}
	}
	return []finding{{good, "journal", "mode WAL", ""}}
}
