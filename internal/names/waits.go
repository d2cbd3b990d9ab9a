package names

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/sqllock/sqllock/internal/stmt"
)

// A Wait is the callers of one process that wait for one lock for long.
type Wait struct {
	Region  string
	LockKey string
	Holder  string        // what the process's registry has in place of a CLIENT_ID
	Waited  time.Duration // by the caller that has waited for the longest time
	Callers int
}

// A written wait is how long a process has waited for a LOCK_KEY when the row was written, in seconds, and how many
// callers have. Readers add the age of the row: no clocks of hosts are compared.
type writtenWait [2]int64

// WriteWaits writes what callers of this process wait for, under an ID that no other registry has: as many of waits as
// one row has room for. For none it writes that there is none. keys are names of keys to be written with it, by
// LOCK_KEY. It reports whether it has.
func (t *Table) WriteWaits(ctx context.Context, holder string, waits []Wait, keys map[string]string) bool {
	return t.write(ctx, append(keyRows(keys), stmt.Claim{LockKey: waitID + holder, Holder: encodeWaits(waits)}))
}

// encodeWaits returns the first of waits, as many as NAME can keep.
func encodeWaits(waits []Wait) string {
	written, text := make(map[string]writtenWait), "{}"
	for _, w := range waits {
		written[w.LockKey] = writtenWait{int64(w.Waited / time.Second), int64(w.Callers)}
		longer, _ := json.Marshal(written) // it has only what JSON has, too
		if !Fits(string(longer)) {
			break
		}
		text = string(longer)
	}
	return inASCII(text)
}

// Waits reads what processes wait for, of every region, and the names of the keys and of the processes. It reads nothing
// more than the table of names.
func (t *Table) Waits(ctx context.Context) (waits []Wait, names Names) {
	notes, _ := t.read(ctx, timeout, t.statements.waits, nil)
	var rows []stmt.Row
	for _, n := range notes {
		holder, _ := strings.CutPrefix(n.id, waitID)
		var written map[string]writtenWait
		_ = json.Unmarshal([]byte(n.text), &written) // a version that writes something else is not known
		for lockKey, w := range written {
			wait := Wait{n.region, lockKey, holder, time.Duration(w[0])*time.Second + n.age, int(w[1])}
			waits, rows = append(waits, wait), append(rows, wait.Row())
		}
	}
	return waits, t.Of(ctx, rows)
}

// Row returns the row that the process would have, by which [Names] are asked for.
func (w Wait) Row() stmt.Row { return stmt.Row{Region: w.Region, LockKey: w.LockKey, Holder: w.Holder} }
