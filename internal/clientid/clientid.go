// Package clientid makes the values of the column CLIENT_ID, and takes them apart: the client id, a dash and the number
// of the acquisition, in eleven hexadecimal digits. In a row that a release leaves, for the rest of a minimum hold or, expired,
// because its key is busy, a mark stands in place of the first digit. A CLIENT_ID is called a holder elsewhere.
package clientid

import (
	"crypto/rand"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
)

const (
	// Max leaves room for a dash and the number in CLIENT_ID CHAR(36).
	Max    = 24
	digits = 11
	bits   = 4 * digits
	// Mark is no hexadecimal digit, so that no acquisition and no UUID of Spring has it in that place.
	Mark = "k"
)

// Split divides a holder into the client id and the number, which may begin with [Mark]. ok is false for that of another
// program, such as Spring's.
func Split(holder string) (client, number string, ok bool) {
	if client = Of(holder); client == "" {
		return "", "", false
	}
	return client, holder[len(client)+1:], true
}

// Of returns the client id of a holder, or "" for that of another program.
func Of(holder string) string {
	n := len(holder) - digits - 1
	if n <= 0 || holder[n] != '-' || strings.Trim(strings.TrimPrefix(holder[n+1:], Mark), "0123456789abcdef") != "" {
		return ""
	}
	return holder[:n]
}

// IsOwn reports whether a holder is one of sqllock's.
func IsOwn(holder string) bool { return Of(holder) != "" }

// IsKept reports whether the row of a holder was left by a release, so that nothing works under its lock any more: for the
// rest of a minimum hold, or, expired, because its key is busy.
func IsKept(holder string) bool {
	_, number, _ := Split(holder)
	return strings.HasPrefix(number, Mark)
}

// A Maker makes the holders of one client. No two acquisitions share one, so a late statement of one never touches the
// row of another.
type Maker struct {
	client string
	last   atomic.Uint64
}

// Seed sets the client id, or makes one for "". Acquisitions are counted from a random start, so that even two
// processes that were given one id by mistake do not take each other's rows for their own.
func (m *Maker) Seed(client string) error {
	var random [randomDigits + 8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return fmt.Errorf("client id: %w", err)
	}
	if m.client = client; client == "" {
		host, _ := os.Hostname() // without one there is the rest
		m.client = recognizable(host, os.Getpid(), random[:randomDigits])
	}
	for _, b := range random[randomDigits:] {
		m.last.Store(m.last.Load()<<8 | uint64(b))
	}
	return nil
}

// Client returns the client id.
func (m *Maker) Client() string { return m.client }

// Prefix is what the holders of the client have in common.
func (m *Maker) Prefix() string { return m.client + "-" }

// Next returns a holder for one acquisition.
func (m *Maker) Next() string {
	const beyond = 1 << bits // one digit more, so that leading zeros are written
	var room [Max + 1 + digits]byte
	number := m.last.Add(1)&(beyond-1) | beyond
	holder := strconv.AppendUint(append(room[:0], m.client...), number, 16)
	holder[len(m.client)] = '-' // in place of that digit
	return string(holder)
}

// NextKept returns a holder that no acquisition has, for a row that a release leaves: see [IsKept].
func (m *Maker) NextKept() string {
	next := m.Next()
	return m.Prefix() + Mark + next[len(next)-digits+len(Mark):]
}

// randomDigits is how many digits of five bits end a client id that Seed makes: 60 bits. Processes with one host
// name and one process ID are told apart by them alone, as the first ones of containers are: of ten thousand of
// these, all at the same time, two have the same with a probability of 1 to 20 thousand million. (And then the
// number of the acquisition, which begins at random, still tells their rows apart: see [Maker.Seed].)
const randomDigits = 12

// recognizable makes a client id by which people recognize a process: the host, the process ID and random digits. Of
// a name that is too long it has the end, where those of pods differ. The whole name is in the table of names.
func recognizable(host string, pid int, random []byte) string {
	const alphabet = "abcdefghijklmnopqrstuvwxyz234567" // in lower case, since a table of Spring's may ignore it
	tail := []byte(":" + strconv.Itoa(pid) + ":")
	for _, b := range random {
		tail = append(tail, alphabet[b%32])
	}
	host, _, _ = strings.Cut(host, ".")
	host = strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, host)
	host = host[max(0, len(host)+len(tail)-Max):]
	return strings.TrimLeft(strings.TrimLeft(host, "-_")+string(tail), ":")
}
