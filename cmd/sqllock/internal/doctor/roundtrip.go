package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/sqltext"
)

// checkRoundTrip acquires, renews and releases a lock that no other program uses.
func (e *examination) checkRoundTrip(ctx context.Context) []finding {
	if e.repository == nil {
		return nil // there is a finding about the table
	}
	began := time.Now()
	if err := roundTrip(ctx, e.repository); err != nil {
		return []finding{{broken, "round trip", textOf(err), e.roundTripAdvice(ctx, err)}}
	}
	return []finding{{good, "round trip", fmt.Sprintf("a lock was acquired (%s), renewed and released in %s", e.isolation(), roundTime(time.Since(began))), ""}}
}

// roundTripTTL is how long the row stays if this process is killed.
const roundTripTTL = 10 * time.Second

func roundTrip(ctx context.Context, r *sqllock.Repository) error {
	key := r.NewHolder() // it is unique
	holder := r.NewHolder()
	got, err := r.Acquire(ctx, key, holder, roundTripTTL)
	switch {
	case err != nil:
		return err
	case !got.Acquired:
		return fmt.Errorf("the test key %q is not free: it is held by %s", key, got.Row.Holder)
	}
	renewed, err := r.Renew(ctx, key, holder, roundTripTTL)
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingLimit)
	defer cancel()
	deleted, deleteErr := r.Delete(after, key, holder)
	switch {
	case err != nil:
		return err
	case deleteErr != nil:
		return deleteErr
	case !renewed || !deleted:
		return fmt.Errorf("the row of the test key %q is missing: something removes locks from the table", key)
	}
	return nil
}

func (e *examination) roundTripAdvice(ctx context.Context, err error) string {
	if sqltext.Of(e.Dialect).Classify(err) == sqltext.ReadOnly {
		return e.readOnlyFinding().Advice
	}
	table := e.names.Lock
	if fence := e.names.Prefix + "LOCK_FENCE"; strings.Contains(strings.ToUpper(err.Error()), strings.ToUpper(fence)) {
		table = e.names.Fence // of which the server says that it is what may not be used
	}
	return e.rightAdvice(ctx, err, table, e.rightsAdvice()+", and that no trigger or other job changes it")
}
