package contract

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/sync/leader"
)

// leaderTests are about electors of several processes, see package leader.
var leaderTests = []test{
	inEachCell("ElectorsLeadInTurn", func(f *fixture) {
		var leading atomic.Int32
		electors, terms := f.electors(3, &leading)
		for range 6 {
			now := <-terms
			f.must(electors[now.of].IsLeader(f.Context()))
			for i, other := range electors {
				if i != now.of {
					f.is(other.IsLeader(f.Context()), leader.ErrNotLeader)
				}
			}
			row := check.Value(electors[now.of].Leader(f.Context()))(f)
			if !row.Me || row.Holder != now.lease.Holder() {
				f.Fatalf("leader %+v, want %s", row, now.lease.Holder())
			}
			f.must(electors[now.of].Resign(f.Context()))
			f.is(electors[now.of].IsLeader(f.Context()), leader.ErrNotLeader)
		}
	}),
	inVirtualTime("ADeletedRowEndsTheTerm", func(f *fixture) {
		electors, terms := f.electors(1, nil)
		first := <-terms
		f.checkDeleted(f.process(), "k", first.lease.Holder(), true)
		<-first.ctx.Done()
		f.is(context.Cause(first.ctx), sqllock.ErrLockLost)
		second := <-terms
		f.must(electors[0].IsLeader(f.Context()))
		if second.lease.Token() <= first.lease.Token() {
			f.Fatalf("token %d after %d", second.lease.Token(), first.lease.Token())
		}
	}),
	once("AnElectorWaitsForALock", func(f *fixture) {
		lease := f.acquire(f.lock(ttl))
		electors, terms := f.electors(1, nil)
		var not *leader.NotLeaderError
		for !errors.As(electors[0].IsLeader(f.Context()), &not) || not.Leader.Holder != lease.Holder() {
			f.pause(short / 10)
		}
		f.must(lease.Unlock(f.Context()))
		<-terms
		f.is(check.ErrorOf(f.lock(ttl).TryLock(f.Context())), sqllock.ErrNotAcquired)
	}),
}

// A leaderTerm is a term of one of several electors.
type leaderTerm struct {
	of    int
	ctx   context.Context
	lease *sqllock.Lease
}

// electors runs electors of n processes, which lead "k" until their contexts end. leading, if not nil, counts those
// that lead at the same time.
func (f *fixture) electors(n int, leading *atomic.Int32) ([]*leader.Elector, <-chan leaderTerm) {
	f.Helper()
	electors, terms := make([]*leader.Elector, n), make(chan leaderTerm, 100)
	for i := range electors {
		e := check.Value(leader.New(f.registry(ttl), "k", &leader.Options{SitOut: short, ObserveEvery: f.cell.idle()}))(f)
		electors[i] = e
		ctx, cancel := context.WithCancel(f.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = e.Run(ctx, func(ctx context.Context, lease *sqllock.Lease) error {
				if leading != nil {
					check.Equal(f, "leaders", leading.Add(1), 1)
					defer leading.Add(-1)
				}
				terms <- leaderTerm{i, ctx, lease}
				<-ctx.Done()
				return nil
			})
		}()
		f.Cleanup(func() { cancel(); <-done })
	}
	return electors, terms
}
