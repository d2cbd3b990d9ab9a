package trial

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
)

// TestNoSchema has the schema of the application's tables, as from the environment. The temporary file of a trial has none.
func TestNoSchema(t *testing.T) {
	t.Parallel()
	ttl := time.Minute
	w := check.Value(newWorkspace(t.Context(), &connect.Flags{Prefix: "billing.INT_"}, "test", &ttl))(t)
	check.Must(t, w.remove(t.Context()))
}

// TestVerdicts breaks one promise at a time: worker 2 is killed a second before its lease expires.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	for name, c := range map[string]struct {
		breaks func(*verification)
		want   string // the line that it breaks
	}{
		"none":              {func(*verification) {}, ""},
		"two at once":       {func(v *verification) { v.overlaps = 1 }, "exclusion  4 processes have had the lock 3 times: overlaps 1, lost updates 0"},
		"a lost update":     {func(v *verification) { v.counter-- }, "exclusion  4 processes have had the lock 3 times: overlaps 0, lost updates 1"},
		"an early takeover": {func(v *verification) { v.entries[2].At = at(1900) }, "expiry     the lock of a killed process was acquired 0.90 s after the kill; its lease had 1.00 s left"},
		"no takeover":       {func(v *verification) { v.killedAt, v.expiry = at(3000), at(4000) }, "expiry     the lock of a killed process was not acquired again; its lease had 1.00 s left"},
		"a token twice":     {func(v *verification) { v.entries[2].Token = 2 }, "tokens     2 was drawn after 2"},
		"a token goes back": {func(v *verification) { v.entries[0].At = at(2500) }, "tokens     1 was drawn after 3"},
		"a late commit":     {func(v *verification) { v.guard = guardVerdict(event{Kind: committed}, event{}, event{Kind: taken}) }, "guard      a transaction was committed although another process had the lock already"},
		"a dirty read": {func(v *verification) {
			v.guard = guardVerdict(event{Kind: committed}, event{Kind: taken}, event{Kind: taken, Written: true})
		}, "guard      the next process has read what was not committed yet"},
		"a refusal in vain": {func(v *verification) {
			v.guard = guardVerdict(event{Kind: failed, Err: "E"}, event{}, event{Kind: taken, Written: true})
		}, "guard      a transaction was refused, and is there: E"},
		"no next holder": {func(v *verification) {
			v.guard = guardVerdict(event{Kind: committed}, event{}, event{Kind: failed, Err: "E"})
		}, "guard      the next process could not acquire the lock: E"},
		"clocks that differ": {func(v *verification) { v.nodes[1].clock[1].Ahead = time.Second }, "clocks     at most 999ms apart, and 800ms from this host's pace"},
		"a clock that is off": {func(v *verification) {
			v.nodes[1].clock = [2]connect.ClockDifference{{Ahead: -time.Second}, {Ahead: -time.Second}}
		}, "clocks     at most 999ms apart, and 0s from this host's pace"},
	} {
		var out strings.Builder
		uncertain := connect.ClockDifference{Ahead: 0, Uncertainty: time.Millisecond}
		v := &verification{
			options: &options{workers: 4, ttl: 2 * time.Second, out: &out}, counter: 3, killedAt: at(1000), expiry: at(2000),
			nodes:   []*node{{clock: [2]connect.ClockDifference{uncertain, uncertain}}, {clock: [2]connect.ClockDifference{{Ahead: 200 * time.Millisecond}, {Ahead: 200 * time.Millisecond}}}},
			entries: []event{{At: at(0), Token: 1}, {At: at(400), Token: 2}, {At: at(2000), Token: 3}},
			guard:   guardVerdict(event{Kind: failed, Err: "E"}, event{Kind: taken}, event{Kind: taken}),
		}
		c.breaks(v)
		code := exit.CodeOf(v.report())
		broken := ""
		for line := range strings.Lines(out.String()) {
			if text, no := strings.CutPrefix(line, "✗ "); no {
				broken += strings.TrimSuffix(text, "\n")
			}
		}
		if broken != c.want || code != map[bool]int{true: exit.Failure}[c.want != ""] {
			t.Errorf("%s: exit code %d, broken %q", name, code, broken)
		}
	}
	check.Is(t, (&verification{options: &options{out: failing{}}}).report(), io.ErrClosedPipe)
}

// TestATrialLockThatIsForgotten has a database that forgets the row of the first lock at once.
func TestATrialLockThatIsForgotten(t *testing.T) {
	ttl := time.Hour
	w := check.Value(newWorkspace(t.Context(), &connect.Flags{DSN: dbtest.SQLite(t).DSN}, "test", &ttl))(t)
	forget := "CREATE TRIGGER forgets BEFORE DELETE ON " + w.flags.Prefix + "LOCK BEGIN SELECT RAISE(IGNORE); END"
	check.Must(t, check.ErrorOf(w.connection.DB.ExecContext(t.Context(), forget)))
	check.Must(t, (&node{flags: w.flags, connection: w.connection}).tryLock(t.Context(), ttl))
	check.Must(t, w.remove(t.Context()))
}

// TestRemovesOverNewSessions has a session that can drop nothing, as on Dolt one that has the tables as they were.
func TestRemovesOverNewSessions(t *testing.T) {
	ttl := time.Hour
	w := check.Value(newWorkspace(t.Context(), &connect.Flags{DSN: dbtest.SQLite(t).DSN}, "test", &ttl))(t)
	check.Must(t, check.ErrorOf(w.connection.DB.ExecContext(t.Context(), "PRAGMA query_only = ON")))
	check.Must(t, w.remove(t.Context()))
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
