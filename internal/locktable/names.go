package locktable

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/transaction"
)

// The table of names has keys as users wrote them, and what processes call themselves. It is optional: if it is
// missing, or cannot be read or written, there are no names, and it is left alone for a while. No error of it reaches
// a caller.

const (
	// NamedAfter is how long a lock is held, or waited for, before its name is written. The holders of younger rows
	// are not asked for.
	NamedAfter = time.Second
	// MaxNames is how many names one statement writes at most, and maxIDs how many one asks for: for more it reads
	// all names.
	MaxNames, maxIDs = 100, 5000
	// namesTimeout limits a statement that writes names, or reads many. processTimeout limits one that reads the name
	// of one process, because a caller waits for it.
	namesTimeout, processTimeout = 2 * time.Second, 250 * time.Millisecond
	// namesRetry is how long the table is left alone after an error that may pass, and namesMissing if it is missing,
	// or after manyFailures: a right that is missing has no class.
	namesRetry, namesMissing = 5 * time.Second, 15 * time.Minute
	manyFailures             = 3
	// unnamedFor is how long a client without a name is not asked for again, at first; it doubles each time, up to
	// longestUnnamed, which is how long one with a name is not. maxProcesses is how many clients are remembered.
	unnamedFor, longestUnnamed = 3 * time.Second, 5 * time.Minute
	maxProcesses               = 1000
	// maxName is the width of NAME, in characters.
	maxName = 1000
)

// What the IDs of names begin with.
const (
	keyID     = "key:"
	processID = "process:"
	waitID    = "wait:"
)

// An access is how statements of one kind get on with the table of names: rights may permit some of them. mu of
// [knownNames] guards it.
type access struct {
	away   time.Time // until when there are none
	failed int       // how many have failed, one after the other
}

// knownNames is what is known of the table of names.
type knownNames struct {
	mu        sync.Mutex
	reading   access
	writing   access
	deleting  access
	processes map[string]knownProcess // by client id
	asking    bool                    // a caller asks for one of them
	// leases are the kinds of leases that this client has, and leasesWritten reports whether all are written.
	leases        map[leaseKind]bool
	leasesWritten bool
	extended      time.Duration // the shortest time-to-live of those that were made to last for longer than it; 0 if none was
}

// A knownProcess is what a client's process calls itself, or "", with the time from which it may be asked for again,
// and how long that is after the last time.
type knownProcess struct {
	name  string
	again time.Time
	pause time.Duration
}

// sendName sends a statement about names, unless the table is left alone, and reports whether it has worked.
func sendName[T any](ctx context.Context, t *Table, a *access, try func() transaction.Try, limit time.Duration, send func(context.Context, executor) (T, error)) (value T, ok bool) {
	t.named.mu.Lock()
	away := time.Now().Before(a.away)
	t.named.mu.Unlock()
	if away {
		return value, false
	}
	value, err := await(ctx, max(limit, t.patience), func(ctx context.Context) (value T, err error) {
		try := try()
		for try.Next(ctx) {
			value, try.Err = send(ctx, try.Conn)
		}
		return value, try.Err
	}, nil)
	if err != nil && bounded.Ended(ctx) != nil {
		return value, false // it says nothing of the table
	}
	t.named.mu.Lock()
	defer t.named.mu.Unlock()
	a.failed++
	switch class := t.errors(err); {
	case err == nil:
		a.failed = 0
	case class == dialect.Schema, class == dialect.NoKey, class == dialect.ReadOnly, a.failed >= manyFailures:
		a.away = time.Now().Add(namesMissing)
	default:
		a.away = time.Now().Add(namesRetry)
	}
	return value, err == nil
}

// WriteNames writes at most [MaxNames] names: those of keys by LOCK_KEY, and what this process calls itself unless
// that is ""; and with that, or if there is something new, what was noted of its leases. It reports whether it has.
func (t *Table) WriteNames(ctx context.Context, keys map[string]string, process string) bool {
	rows := make([]Claim, 0, len(keys)+1)
	for lockKey, key := range keys {
		rows = append(rows, Claim{LockKey: keyID + lockKey, Holder: encodeName(key)})
	}
	if process != "" {
		rows = append(rows, Claim{LockKey: processID + t.holders.client, Holder: encodeName(process)})
	}
	leases := t.HasUnwrittenLeases()
	if leases || process != "" {
		rows = append(rows, t.leasesRow())
	}
	written := t.writeNames(ctx, rows)
	if leases && !written {
		t.named.mu.Lock()
		defer t.named.mu.Unlock()
		t.named.leasesWritten = false
	}
	return written
}

// writeNames writes rows, which have ID and NAME in place of LOCK_KEY and CLIENT_ID, and reports whether it has.
func (t *Table) writeNames(ctx context.Context, rows []Claim) bool {
	_, ok := sendName(ctx, t, &t.named.writing, t.pool.TryOutside, namesTimeout, func(ctx context.Context, db executor) (none struct{}, err error) {
		text, args, err := t.statements.writeNames.bindMany(t.statements.writeName, values{rows: rows}) // in the order of IDs
		if err == nil {
			_, err = db.ExecContext(ctx, text, args...)
		}
		return none, err
	})
	return ok
}

// DeleteOldNames deletes some names that have not been written for a day, of every region, and reports whether there
// may be more.
func (t *Table) DeleteOldNames(ctx context.Context) (more bool) {
	deleted, _ := sendName(ctx, t, &t.named.deleting, t.pool.TryOutside, namesTimeout, func(ctx context.Context, db executor) (int64, error) {
		old, err := selectTexts(ctx, db, t.statements.oldNames, values{})
		if err != nil || len(old) == 0 {
			return 0, err
		}
		return exec(ctx, db, t.statements.deleteNames, values{keys: old})
	})
	return deleted > 0
}

// Names are names that were read.
type Names struct {
	texts map[nameID]string
}

type nameID struct{ region, id string }

// Key returns the key of a row as its user wrote it, or "".
func (n Names) Key(row Row) string { return n.texts[nameID{row.Region, keyID + row.LockKey}] }

// Process returns what the process that holds a row calls itself, or "".
func (n Names) Process(row Row) string {
	return n.texts[nameID{row.Region, processID + ClientOf(row.Holder)}]
}

// NamesOf reads the names of rows, as far as there are any, by one statement.
func (t *Table) NamesOf(ctx context.Context, rows []Row) Names {
	ids := make(map[string]bool)
	for _, row := range rows {
		ids[keyID+row.LockKey] = true
		if client := ClientOf(row.Holder); client != "" {
			ids[processID+client] = true
		}
	}
	return t.readNames(ctx, namesTimeout, slices.Sorted(maps.Keys(ids)))
}

func (t *Table) readNames(ctx context.Context, limit time.Duration, ids []string) Names {
	if len(ids) == 0 {
		return Names{}
	}
	s := t.statements.names
	if len(ids) > maxIDs {
		s = t.statements.allNames
	}
	texts, _ := sendName(ctx, t, &t.named.reading, t.pool.Try, limit, func(ctx context.Context, db executor) (map[nameID]string, error) {
		texts := make(map[nameID]string)
		err := query(ctx, db, s, values{keys: ids}, func(rows *sql.Rows) error {
			var id nameID
			var text string
			err := rows.Scan(&id.region, &id.id, &text)
			texts[id] = decodeName(text)
			return err
		})
		return texts, err
	})
	return Names{texts}
}

// Process returns what the process that holds a row calls itself, or "" if that is not known. It asks the database at
// most once in five minutes for each client, unless that has no name yet, and only if the row is old enough to have
// one.
func (t *Table) Process(ctx context.Context, row Row) string {
	client := ClientOf(row.Holder)
	if client == "" {
		return ""
	}
	name, ask := t.named.process(client, row.Age >= NamedAfter)
	if !ask {
		return name
	}
	name = t.readNames(ctx, processTimeout, []string{processID + client}).texts[nameID{t.region, processID + client}]
	t.named.mu.Lock()
	defer t.named.mu.Unlock()
	t.named.asking = false
	known := t.named.processes[client]
	pause := min(max(2*known.pause, unnamedFor), longestUnnamed)
	if name = cmp.Or(name, known.name); name != "" {
		pause = longestUnnamed // another process may have this client id by then
	}
	t.named.processes[client] = knownProcess{name, time.Now().Add(pause), pause}
	return name
}

// ProcessNow returns what the process that has a holder calls itself, or "". It asks each time, also for a row that is younger
// than [NamedAfter]: its process may have written its name for an earlier lock, or at once, because it ends before the lease does.
func (t *Table) ProcessNow(ctx context.Context, holder string) string {
	id := processID + ClientOf(holder)
	return t.readNames(ctx, processTimeout, []string{id}).texts[nameID{t.region, id}]
}

// KnownProcess returns what the process that has a holder calls itself, as far as that is known without the database.
func (t *Table) KnownProcess(holder string) string {
	name, _ := t.named.process(ClientOf(holder), false)
	return name
}

// process returns what is known of a client, and reports whether the caller is to ask for it: one at a time does, so
// that many waiters do not use up the pool.
func (k *knownNames) process(client string, old bool) (name string, ask bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.processes[client]
	if now := time.Now(); !old || k.asking || now.Before(known.again) || now.Before(k.reading.away) {
		return known.name, false
	}
	if k.processes == nil || len(k.processes) >= maxProcesses {
		k.processes = make(map[string]knownProcess)
	}
	k.asking = true
	return "", true
}

// IsOwn reports whether a CLIENT_ID is of this client. That of "web-7" is not of "web", although it begins with
// "web-".
func (t *Table) IsOwn(holder string) bool { return ClientOf(holder) == t.holders.client }

// ClientOf returns the client id in a CLIENT_ID of sqllock, or "" for that of another program.
func ClientOf(holder string) string {
	n := len(holder) - acquisitionDigits - 1
	if n <= 0 || holder[n] != '-' || strings.Trim(holder[n+1:], "0123456789abcdef"+dialect.KeptMark) != "" {
		return ""
	}
	return holder[:n]
}

// encodeName returns a name as it stands in NAME: as it is if it has printable ASCII alone, else as a string of Go,
// so that every database can keep it and every session reads the same. One that is too long is cut, and ends in three
// dots.
func encodeName(name string) string {
	text := inASCII(name)
	for end := len(name); len(text) > maxName; {
		end = min(end, maxName) - 1
		for n := 1; n < utf8.UTFMax && end > 0 && !utf8.RuneStart(name[end]); n++ {
			end--
		}
		text = inASCII(name[:end] + "...")
	}
	return text
}

// NameFits reports whether NAME can keep a name that is not cut.
func NameFits(name string) bool { return len(inASCII(name)) <= maxName }

func inASCII(name string) string {
	isOther := func(r rune) bool { return r < ' ' || r > '~' }
	if strings.HasPrefix(name, `"`) || strings.ContainsFunc(name, isOther) {
		return strconv.QuoteToASCII(name)
	}
	return name
}

// decodeName is the inverse of encodeName.
func decodeName(text string) string {
	if strings.HasPrefix(text, `"`) { // no text that stands as it is does
		if name, err := strconv.Unquote(text); err == nil {
			return name
		}
	}
	return text
}
