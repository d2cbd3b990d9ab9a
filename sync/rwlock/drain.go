package rwlock

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/seats"
)

// A drain waits until those readers have left that were in when the write lock's row had been
// acquired. Readers whose rows come later find that row, and do not get in. They need not be waited
// for, so they cannot delay the writer either.
type drain struct {
	*call

	lease  *sqllock.Lease // of the write lock's row
	length time.Duration  // how long lease lasts after it was acquired or renewed
	inside []string       // the holders of the seats of those readers; nil until they were read
	waited bool           // it has tried more than once
}

func newDrain(c *call, lease *sqllock.Lease) *drain {
	d := &drain{call: c, lease: lease}
	d.measure()
	return d
}

// measure notes how long the lease lasts, which was acquired or renewed just now.
func (d *drain) measure() { d.length = max(d.length, time.Until(d.lease.Deadline())) }

// wait tries until no reader is to be waited for, and leaves a lease that lasts for its whole time-to-live. It returns
// [sqllock.ErrLockLost] if the lease is lost.
func (d *drain) wait() error {
	// The lease must be renewed in time between two polls, if nothing else renews it.
	if _, err := d.readers.Poll(d.waiting, max(d.length/8, time.Millisecond), d.try); err != nil {
		return d.failed(err)
	}
	if d.waited {
		return d.renew()
	}
	return nil
}

// try returns [sqllock.ErrNotAcquired] while there are readers to be waited for.
func (d *drain) try() error {
	d.waited = d.inside != nil
	if d.lease.Context().Err() != nil || time.Until(d.lease.Deadline()) < d.length/2 { // if it is over, renew says why
		if err := d.renew(); err != nil {
			return err
		}
	}
	read, err := d.readers.Read(d.waiting)
	if err != nil {
		return d.failed(err)
	}
	inside := d.stillInside(read.Holders())
	if len(inside) == 0 {
		return d.takeOver(read.ExpiredSeats()...)
	}
	next := slices.MinFunc(inside, func(a, b seats.Holder) int { return cmp.Compare(a.Left, b.Left) })
	return d.refused(sqllock.Row{Holder: next.ID, Left: next.Left})
}

// stillInside returns those of the holders of seats that are to be waited for. A seat that is acquired
// again has another holder.
func (d *drain) stillInside(holders []seats.Holder) []seats.Holder {
	if d.inside != nil {
		holders = slices.DeleteFunc(holders, func(h seats.Holder) bool { return !slices.Contains(d.inside, h.ID) })
	}
	d.inside = make([]string, len(holders))
	for i, h := range holders {
		d.inside[i] = h.ID
	}
	return holders
}

// renew renews the lease. A row that is pinned by a transaction of the caller's is safe without that.
func (d *drain) renew() error {
	err := d.lease.Renew(d.waiting)
	d.measure()
	if err == nil || errors.Is(err, sqllock.ErrPinned) {
		return nil
	}
	return d.failed(err)
}
