package locktable

import (
	"slices"
	"time"

	"github.com/sqllock/sqllock/internal/expiring"
)

// unsettled remembers, by LOCK_KEY, the claims whose rows may exist although they have no
// holder: those of acquisitions and releases with an unknown outcome. Until its time-to-live
// ends, such a row keeps out all callers, those of its own client too. So it is deleted before
// that client's next acquisition of the key.
//
// The next acquisition never uses the holder of an unsettled claim again: a deletion of its
// row may still be on its way.
type unsettled struct {
	// present are those whose rows may be there: the deletion failed. They are
	// remembered for as long as the row lasts.
	present expiring.Map[string, []unsettledHolder]
	// absent are those whose rows were not there, but may be written yet.
	absent expiring.Map[string, []unsettledHolder]
}

type unsettledHolder struct {
	holder string
	until  time.Time // when it is forgotten
}

// An unsettledClaim is a claim of one row that was taken.
type unsettledClaim struct {
	Claim

	until time.Time
}

// addPresent adds a claim whose row may be there until then.
func (u *unsettled) addPresent(c Claim, until time.Time) {
	for i := range c.count() {
		lockKey := c.lockKeyAt(i)
		add(&u.present, lockKey, unsettledHolder{c.Holder, until})
	}
}

// addAbsent adds a claim whose row may be written until then.
func (u *unsettled) addAbsent(c Claim, until time.Time) {
	for i := range c.count() {
		lockKey := c.lockKeyAt(i)
		add(&u.absent, lockKey, unsettledHolder{c.Holder, until})
	}
}

// has reports whether there are claims of a key.
func (u *unsettled) has(lockKey string) bool {
	_, present := u.present.Get(lockKey)
	_, absent := u.absent.Get(lockKey)
	return present || absent
}

// keys are the LOCK_KEYs of all claims.
func (u *unsettled) keys() []string { return append(u.present.Keys(), u.absent.Keys()...) }

// take removes and returns the claims of keys.
func (u *unsettled) take(lockKeys []string) (claims []unsettledClaim) {
	for _, lockKey := range lockKeys {
		present, _ := u.present.Take(lockKey)
		absent, _ := u.absent.Take(lockKey)
		for _, h := range withoutForgotten(append(present, absent...)) {
			claims = append(claims, unsettledClaim{Claim{LockKey: lockKey, Holder: h.holder}, h.until})
		}
	}
	return claims
}

// putBack adds claims that were taken, and whose rows may be there.
func (u *unsettled) putBack(claims []unsettledClaim) {
	for _, c := range claims {
		add(&u.present, c.LockKey, unsettledHolder{c.Holder, c.until})
	}
}

func add(m *expiring.Map[string, []unsettledHolder], lockKey string, h unsettledHolder) {
	m.Put(lockKey, h.until, func(holders []unsettledHolder) []unsettledHolder {
		return append(withoutForgotten(holders), h)
	})
}

func withoutForgotten(holders []unsettledHolder) []unsettledHolder {
	now := time.Now()
	return slices.DeleteFunc(holders, func(h unsettledHolder) bool { return !now.Before(h.until) })
}
