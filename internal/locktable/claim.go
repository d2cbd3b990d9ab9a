package locktable

import (
	"crypto/rand"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/dialect"
)

// A Claim is a row as one acquisition wants it, or several.
//
// A joint claim is one of several rows: one acquisition has all of them, or none. It has one
// holder. Each verb of the table takes it like that of one row, and does what it does to all of
// the rows, by one statement. Joint claims are not batched: they are batches.
type Claim struct {
	LockKey string        // LOCK_KEY
	Holder  string        // CLIENT_ID of the acquisition: see [Table.NewHolder]
	TTL     time.Duration // how long the row is to last from now
	More    []string      // further LOCK_KEYs, higher and in order, of a joint claim
	// InOrder, unless it is "", is the LOCK_KEY whose turn must be free for [Table.Acquire]: see [Table.TakeTurn].
	InOrder string

	turn    int64 // the number of that turn, or 0
	resent  bool  // it was sent before, and that may still be done
	cleared bool  // an attempt has met a leftover row of this client, and has deleted it
}

func (c Claim) id() rowID { return rowID{c.LockKey, c.Holder} }

// A rowID is a row of the region as one holder knows it. The result of a statement for many
// rows is matched by both: one holder may be in the rows of several keys.
type rowID struct{ lockKey, holder string }

// A Row is one row of the lock table. The root package documents the fields.
type Row struct {
	Region, LockKey string
	Holder          string
	Age             time.Duration
	Left            time.Duration
}

// Expired reports whether any contender may take the row over.
func (r Row) Expired() bool { return r.Left < 0 }

// isHeldBy reports whether the row is that of the claim, and lasts.
func (r Row) isHeldBy(c Claim) bool { return r.Holder == c.Holder && !r.Expired() }

// isOf reports whether the row is that of the claim, whether it lasts or not.
func (r Row) isOf(c Claim) bool { return r.Holder == c.Holder && r.LockKey == c.LockKey }

// A Result is the answer to an attempt to acquire.
type Result struct {
	// Acquired reports whether the row carries the claim's holder now.
	Acquired bool
	// Token is the fencing token of the acquisition.
	Token int64
	// Row is the row that is in the way if Acquired is false. It is zero if the row went
	// away in the meantime.
	Row Row
	// Sent is when the statement was sent that has acquired the row: the last one, after lost races.
	Sent time.Time
	// Batched reports whether a statement for several rows gave the answer.
	Batched bool
}

// An Outcome is what became of a row that was to be renewed beside others.
type Outcome int

const (
	// Lost means that there is no such row, or that it has expired.
	Lost Outcome = iota
	// Renewed means that the row lasts for its time-to-live again.
	Renewed
	// Pinned means that the row is there, but that a transaction has pinned it or is
	// changing it, so that it was not renewed.
	Pinned
)

// A GuardResult is what a guarded transaction found.
type GuardResult int

const (
	// NotHeld means that there is no such row, or that it has expired.
	NotHeld GuardResult = iota
	// Guarded means that the transaction has pinned the row.
	Guarded
	// StaleSnapshot means that the row is there, but that the transaction's snapshot is
	// older and does not show it.
	StaleSnapshot
)

// IsJoint reports whether c is a claim of several rows.
func (c Claim) IsJoint() bool { return len(c.More) > 0 }

// count is how many rows c is about.
func (c Claim) count() int { return 1 + len(c.More) }

// lockKeyAt is the LOCK_KEY of the i-th row.
func (c Claim) lockKeyAt(i int) string {
	if i == 0 {
		return c.LockKey
	}
	return c.More[i-1]
}

// lockKeys are the LOCK_KEYs of c, in order.
func (c Claim) lockKeys() []string { return append([]string{c.LockKey}, c.More...) }

// single is the claim of one of c's rows.
func (c Claim) single(lockKey string) Claim {
	one := Claim{LockKey: lockKey, Holder: c.Holder, TTL: c.TTL}
	if lockKey == c.InOrder {
		one.turn = c.turn
	}
	return one
}

// each returns the claims of c's rows, in the order of their keys.
func (c Claim) each() []Claim {
	claims := make([]Claim, c.count())
	for i := range claims {
		claims[i] = c.single(c.lockKeyAt(i))
	}
	return claims
}

// flattened returns the claims of all rows of claims.
func flattened(claims []Claim) []Claim {
	if !slices.ContainsFunc(claims, Claim.IsJoint) {
		return claims
	}
	var all []Claim
	for _, c := range claims {
		all = append(all, c.each()...)
	}
	return all
}

const (
	// MaxClientID leaves room for "-" and the acquisition number in CLIENT_ID CHAR(36).
	MaxClientID       = 24
	acquisitionDigits = 11
	acquisitionBits   = 4 * acquisitionDigits
)

// holders makes the CLIENT_IDs of one client: the client id, a dash and an acquisition
// number in hexadecimal digits. No two acquisitions share a holder, so a late statement of
// one never touches the row of another.
type holders struct {
	client string
	last   atomic.Uint64
}

// seed sets the client id, or makes one for "". Acquisitions are counted from a random start, so that even two
// processes that were given one id by mistake do not take each other's rows for their own.
func (h *holders) seed(client string) error {
	var random [randomDigits + 8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return fmt.Errorf("client id: %w", err)
	}
	if h.client = client; client == "" {
		host, _ := os.Hostname() // without one there is the rest
		h.client = newClientID(host, os.Getpid(), random[:randomDigits])
	}
	for _, b := range random[randomDigits:] {
		h.last.Store(h.last.Load()<<8 | uint64(b))
	}
	return nil
}

// randomDigits is how many digits of five bits end a client id that seed makes: 60 bits. Processes with one host
// name and one process ID are told apart by them alone, as the first ones of containers are: of ten thousand of
// these, all at the same time, two have the same with a probability of 1 to 20 thousand million. (And then the
// number of the acquisition, which begins at random, still tells their rows apart: see seed.)
const randomDigits = 12

// newClientID makes a client id by which people recognize a process: the host, the process ID and random digits. Of
// a name that is too long it has the end, where those of pods differ. The whole name is in the table of names.
func newClientID(host string, pid int, random []byte) string {
	const digits = "abcdefghijklmnopqrstuvwxyz234567" // in lower case, since a table of Spring's may ignore it
	tail := []byte(":" + strconv.Itoa(pid) + ":")
	for _, b := range random {
		tail = append(tail, digits[b%32])
	}
	host, _, _ = strings.Cut(host, ".")
	host = strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, host)
	host = host[max(0, len(host)+len(tail)-MaxClientID):]
	return strings.TrimLeft(strings.TrimLeft(host, "-_")+string(tail), ":")
}

// prefix is what the holders of this client have in common.
func (h *holders) prefix() string { return h.client + "-" }

// NewHolder returns a CLIENT_ID for one acquisition: the client id, a dash and a number that no other acquisition of
// this table has.
func (t *Table) NewHolder() string { return t.holders.client + "-" + t.holders.number() }

// nextKept returns a holder that no acquisition has, of the form of [dialect.IsKept], for a row that stays for the rest of a minimum hold.
func (h *holders) nextKept() string {
	return h.client + "-" + dialect.KeptMark + h.number()[len(dialect.KeptMark):]
}

// number returns the next number, in digits.
func (h *holders) number() string {
	const beyond = 1 << acquisitionBits // one digit more, so that leading zeros are written
	var digits [acquisitionDigits + 1]byte
	number := h.last.Add(1)&(beyond-1) | beyond
	return string(strconv.AppendUint(digits[:0], number, 16)[1:])
}

// ownForm matches the ends of all holders that this package makes, and no UUID.
var ownForm = regexp.MustCompile(fmt.Sprintf("-[%s0-9a-f][0-9a-f]{%d}$", dialect.KeptMark, acquisitionDigits-1))

// IsOwn reports whether a holder is one of sqllock's, and not one of another program's that uses the table, such as Spring's.
func IsOwn(holder string) bool { return ownForm.MatchString(holder) }
