package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
)

func (p *patient) checkServer(ctx context.Context) []finding {
	var version string
	if err := p.DB.GetContext(ctx, &version, p.texts.Version); err != nil {
		return []finding{{noteworthy, "server", "does not tell its version: " + findingText(err), "see that it is PostgreSQL, MySQL, MariaDB or SQLite"}}
	}
	name, oldest := serverOf(p.Dialect.Name, version)
	if olderThan(version, oldest) {
		return []finding{{noteworthy, "server", name, "sqllock is made for version " + oldest + " and later: upgrade the server"}}
	}
	return []finding{{fine, "server", name, ""}}
}

// serverOf returns the name of a server to be shown and the oldest version that
// sqllock is made for.
func serverOf(kind, version string) (name, oldest string) {
	switch {
	case kind == "postgres":
		name, _, _ = strings.Cut(version, " on ") // the machine and compiler follow
		return name, "10.0"
	case kind == "sqlite":
		return version, "3.42"
	case strings.Contains(version, "MariaDB"):
		number, _, _ := strings.Cut(version, "-")
		return "MariaDB " + number, "10.6"
	default:
		return "MySQL " + version, "8.0"
	}
}

var numberForm = regexp.MustCompile(`(\d+)(?:\.(\d+))?`)

// olderThan compares the first number in version with oldest. A version without
// numbers is not older.
func olderThan(version, oldest string) bool {
	have, want := numberForm.FindStringSubmatch(version), numberForm.FindStringSubmatch(oldest)
	if have == nil {
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

func (p *patient) checkWrites(ctx context.Context) []finding {
	var readOnly int
	switch err := p.DB.GetContext(ctx, &readOnly, p.texts.ReadOnly); {
	case err != nil:
		return []finding{{noteworthy, "writes", "cannot tell whether they are accepted: " + findingText(err), "the round trip below will tell"}}
	case readOnly != 0:
		return []finding{p.readOnlyFinding()}
	default:
		return []finding{{fine, "writes", "accepted", ""}}
	}
}

// readOnlyFinding says that writes are refused, and by what.
func (p *patient) readOnlyFinding() finding {
	if p.Dialect.Embedded {
		return finding{broken, "writes", "refused: the file is opened to be read only", "give " + writableHint + ", without parameters like mode=ro: taking a lock writes a row"}
	}
	return finding{broken, "writes", "refused: the server is a replica or set read-only", "give the DSN of the primary server: taking a lock writes a row"}
}

func (p *patient) checkTable(context.Context) []finding {
	// What tokens are drawn from is looked at below.
	r, err := p.g.repository(p.connection, sqllock.RepositoryOptions{ClientID: "doctor", WithoutFence: true}) //nolint:contextcheck // NewRepository takes none
	if err != nil {
		return []finding{{broken, "table", findingText(err), p.tableAdvice(err)}}
	}
	p.repository = r
	text := p.names.Lock + ", layout " + r.Layout().String()
	if r.Layout() == dialect.Spring6 {
		return []finding{{
			fine, "table", text + " (no EXPIRED_AFTER)",
			"all users of the table must have the same time-to-live; once no Spring before 7 shares it: sqllock migrate up",
		}}
	}
	return []finding{{fine, "table", text, ""}}
}

// checkFence looks for what fencing tokens are drawn from, which Spring's own table
// has not beside it.
func (p *patient) checkFence(context.Context) []finding {
	if p.repository == nil {
		return nil
	}
	r, err := p.g.repository(p.connection, sqllock.RepositoryOptions{ClientID: "doctor"}) //nolint:contextcheck // NewRepository takes none
	if err != nil {
		return []finding{{broken, "fence", findingText(err), fmt.Sprintf(
			"sqllock migrate up --layout %v creates it beside the table; without it a program can only lock with WithoutFence", p.repository.Layout())}}
	}
	p.repository = r
	return []finding{{fine, "fence", "fencing tokens come from " + p.names.Fence, ""}}
}

func (p *patient) tableAdvice(err error) string {
	switch {
	case missesTable(err):
		return migrateUp(p.g.prefix) + " creates it; --prefix chooses another"
	case strings.Contains(err.Error(), "DATETIME(6)"):
		return "see the line about precision below"
	case errors.Is(err, sqllock.ErrSchema):
		return "choose another table with --prefix, or remove this one"
	default:
		return p.rightsAdvice()
	}
}

func (p *patient) rightsAdvice() string {
	return "see that the user may SELECT, INSERT, UPDATE and DELETE in " + p.names.Lock + ", and use " + p.names.Fence
}

// longestClockDifference is what nobody would notice in a listing.
const longestClockDifference = time.Second

func (p *patient) checkClock(ctx context.Context) []finding {
	var micros int64
	began := time.Now()
	if err := p.DB.GetContext(ctx, &micros, p.texts.Clock); err != nil {
		return []finding{{noteworthy, "clocks", "the database does not tell its time: " + findingText(err), "locks compare no clocks, so they work all the same"}}
	}
	took := time.Since(began)
	difference := time.UnixMicro(micros).Sub(began.Add(took / 2))
	return []finding{clockFinding(difference, took/2)}
}

// clockFinding judges a difference that is known up to an uncertainty.
func clockFinding(difference, uncertainty time.Duration) finding {
	way := "ahead of"
	if difference < 0 {
		way = "behind"
	}
	switch {
	case difference.Abs() > longestClockDifference+uncertainty:
		return finding{
			noteworthy, "clocks", fmt.Sprintf("the database's is %s %s this host's", short(difference.Abs()), way),
			"locks compare no clocks, so they work; but who reads times of the table beside logs of this host is misled: synchronise both with NTP",
		}
	case difference.Abs() <= uncertainty:
		return finding{fine, "clocks", fmt.Sprintf("no difference between the database's and this host's (within %s)", brief(uncertainty)), ""}
	default:
		return finding{fine, "clocks", fmt.Sprintf("the database's is %s %s this host's", brief(difference.Abs()), way), ""}
	}
}

// checkRoundTrip takes, renews and releases a lock that nobody else uses.
func (p *patient) checkRoundTrip(ctx context.Context) []finding {
	if p.repository == nil {
		return nil // the finding about the table says it all
	}
	began := time.Now()
	if err := roundTrip(ctx, p.repository); err != nil {
		return []finding{{broken, "round trip", findingText(err), p.roundTripAdvice(err)}}
	}
	return []finding{{fine, "round trip", fmt.Sprintf("a lock was taken (SERIALIZABLE), renewed and released in %s", brief(time.Since(began))), ""}}
}

// roundTripTTL is how long the scratch row stays if the doctor is killed.
const roundTripTTL = 10 * time.Second

func roundTrip(ctx context.Context, r *sqllock.Repository) error {
	key := r.NewHolder() // nobody else has it
	holder := r.NewHolder()
	got, err := r.Acquire(ctx, key, holder, roundTripTTL)
	switch {
	case err != nil:
		return err
	case !got.Acquired:
		return fmt.Errorf("the scratch key %q is not free: it is held by %s", key, got.Row.Holder)
	}
	renewed, err := r.Renew(ctx, key, holder, roundTripTTL)
	deleted, deleteErr := r.Delete(context.WithoutCancel(ctx), key, holder)
	switch {
	case err != nil:
		return err
	case deleteErr != nil:
		return deleteErr
	case !renewed || !deleted:
		return fmt.Errorf("the row of the scratch key %q was gone: something removes locks from the table", key)
	}
	return nil
}

func (p *patient) roundTripAdvice(err error) string {
	if p.Dialect.Classify(err) == dialect.ReadOnly {
		return p.readOnlyFinding().advice
	}
	return p.rightsAdvice() + ", and that no trigger or job of others changes it"
}
