package locktable

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"sync/atomic"
)

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

// seed sets the client id, or a random one for "". Acquisitions are counted from a random
// start, so that even two processes that were given one id by mistake do not take each
// other's rows for their own.
func (h *holders) seed(client string) error {
	var random [MaxClientID/2 + 8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return fmt.Errorf("client id: %w", err)
	}
	if h.client = client; client == "" {
		h.client = hex.EncodeToString(random[:MaxClientID/2])
	}
	for _, b := range random[MaxClientID/2:] {
		h.last.Store(h.last.Load()<<8 | uint64(b))
	}
	return nil
}

// prefix is what the holders of this client have in common.
func (h *holders) prefix() string { return h.client + "-" }

func (h *holders) next() string {
	const beyond = 1 << acquisitionBits // one digit more, so that leading zeros are written
	var digits [acquisitionDigits + 1]byte
	number := h.last.Add(1)&(beyond-1) | beyond
	return h.client + "-" + string(strconv.AppendUint(digits[:0], number, 16)[1:])
}
