package sqllock

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"sync/atomic"
)

// maxClientID leaves room for "-" and the acquisition number in CLIENT_ID CHAR(36).
const (
	maxClientID       = 24
	acquisitionDigits = 11
	acquisitionBits   = 4 * acquisitionDigits
)

var clientForm = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,24}$`)

// A client makes the holders of one repository's acquisitions: the client id, a
// dash and an acquisition number in hexadecimal digits, which is what stands in
// CLIENT_ID. No two acquisitions share a holder, so a late statement of one never
// touches the row of another.
type client struct {
	id   string
	last atomic.Uint64
}

// newClient returns a client with the given id, or a random one for "".
// Acquisitions are counted from a random start, so that even two processes that
// were given one id by mistake do not take each other's rows for their own.
func newClient(id string) (*client, error) {
	var random [maxClientID/2 + 8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, fmt.Errorf("sqllock: client id: %w", err)
	}
	switch {
	case id == "":
		id = hex.EncodeToString(random[:maxClientID/2])
	case !clientForm.MatchString(id):
		return nil, invalid("client id %q: it has 1 to %d characters out of letters, digits and . _ : -", id, maxClientID)
	}
	c := &client{id: id}
	for _, b := range random[maxClientID/2:] {
		c.last.Store(c.last.Load()<<8 | uint64(b))
	}
	return c, nil
}

// prefix is what the holders of this client have in common.
func (c *client) prefix() string { return c.id + "-" }

func (c *client) nextHolder() string {
	const beyond = 1 << acquisitionBits // one digit more, so that leading zeros are written
	var digits [acquisitionDigits + 1]byte
	number := c.last.Add(1)&(beyond-1) | beyond
	return c.id + "-" + string(strconv.AppendUint(digits[:0], number, 16)[1:])
}
