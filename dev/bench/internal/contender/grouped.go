package contender

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/sqllock/sqllock/dev/bench/internal/durable"
)

// grouped is a minimal implementation of batching: callers put their rows into a queue and wait;
// a goroutine sends the queued rows as one batch and wakes the callers. It has no leases, no
// timeouts, no cancellation and no handling of errors. Compared with batches, it shows the
// cost of having a caller for each row.
func grouped() []Contender {
	return []Contender{{
		Name:     "raw statements, grouped/pgx",
		Library:  "the bare statements",
		Version:  "-",
		Database: durable.Postgres,
		Settings: "prepared, serializable; callers queue for two batches, and are woken; no lease, no retries",
		Quick:    true,
		Only:     []string{"pairs 64", "pairs 256"},
		Prepare:  func(ctx context.Context, at Place) error { return postgresPGX.with(ctx, at, postgresPGX.migrate) },
		Open: func(ctx context.Context, at Place) (Session, error) {
			session, err := openBatches(ctx, at, pgx.Serializable)
			if err != nil {
				return nil, err
			}
			s := &groupedSession{
				batches:   session.(*batchSession),
				acquiring: make(chan waiting, mostInBatch), removing: make(chan waiting, mostInBatch),
			}
			s.work(ctx)
			return s, nil
		},
	}}
}

type groupedSession struct {
	batches             *batchSession
	acquiring, removing chan waiting
	done                [2]chan struct{} // closed when the goroutines of the queues have ended
	holders             atomic.Int64
}

// waiting is a row and its caller.
type waiting struct {
	row  row
	told chan error
}

// Lock acquires the row in a batch with others.
func (s *groupedSession) Lock(_ context.Context, key string) (Unlock, error) {
	w := waiting{newRow(key, fmt.Sprintf("grouped-%d", s.holders.Add(1))), make(chan error, 1)}
	s.acquiring <- w
	if err := <-w.told; err != nil {
		return nil, err
	}
	return func(context.Context) error {
		s.removing <- w
		return <-w.told
	}, nil
}

// Connections are those of the two queues.
func (s *groupedSession) Connections() int { return s.batches.Connections() }

// Close must be called when there are no callers.
func (s *groupedSession) Close() error {
	close(s.acquiring)
	close(s.removing)
	for _, done := range s.done {
		<-done
	}
	return s.batches.Close()
}

// work starts the goroutines of both queues.
func (s *groupedSession) work(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	for i, lane := range []struct {
		queue chan waiting
		send  func(context.Context, rowBatch) error
	}{
		{s.acquiring, s.batches.acquireAll},
		{s.removing, func(ctx context.Context, b rowBatch) error { return b.send(ctx, s.batches.remove, b.remove) }},
	} {
		s.done[i] = make(chan struct{})
		go func() {
			defer close(s.done[i])
			for first := range lane.queue {
				s.together(ctx, append([]waiting{first}, rest(lane.queue)...), lane.send)
			}
		}()
	}
}

// rest takes all queued rows, after the woken callers have had a chance to run.
func rest(queue chan waiting) (more []waiting) {
	runtime.Gosched()
	for len(more) < mostInBatch-1 {
		select {
		case w, ok := <-queue:
			if !ok {
				return more
			}
			more = append(more, w)
		default:
			return more
		}
	}
	return more
}

func (s *groupedSession) together(ctx context.Context, all []waiting, send func(context.Context, rowBatch) error) {
	rows := make([]row, len(all))
	for i, w := range all {
		rows[i] = w.row
	}
	batch, err := s.batches.batch(rows)
	if err == nil {
		err = send(ctx, batch)
	}
	for _, w := range all {
		w.told <- err
	}
}
