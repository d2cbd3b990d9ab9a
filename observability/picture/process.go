package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/leader"
	"github.com/sqllock/sqllock/observe"
	sqllockprom "github.com/sqllock/sqllock/prometheus"
)

// ttl is short enough that leases can expire while the picture is watched.
const ttl = 12 * time.Second

// A database is where the locks are. It is migrated.
type database struct {
	network *flaky.Connector
	dialect dialect.Dialect
}

// A process is one instance of the application: a registry of its own, with metrics of its own, over
// connections that can be made to fail.
type process struct {
	instance string
	network  *flaky.Connector
	pool     *sql.DB
	registry *sqllock.Registry
	metrics  *prometheus.Registry
	elector  *leader.Elector
}

// start starts an instance. Of all instances one, the first, counts the rows of the table.
func start(ctx context.Context, instance string, db database, countsRows bool) (p *process, err error) {
	p = &process{instance: instance, network: db.network, pool: sql.OpenDB(db.network), metrics: prometheus.NewRegistry()}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.pool.Close())
		}
	}()
	repository, err := sqllock.NewRepository(ctx, p.pool, db.dialect, &sqllock.RepositoryOptions{Keys: sqllock.PlainKeys, ClientID: instance})
	if err != nil {
		return nil, err
	}
	var opts sqllockprom.Options
	if countsRows {
		opts.Rows = repository
	}
	collector := sqllockprom.New(&opts)
	if err := p.metrics.Register(collector); err != nil {
		return nil, err
	}
	p.registry, err = sqllock.NewRegistry(repository, &sqllock.RegistryOptions{
		TTL: ttl, AutoRenew: true, HandOff: true, Observers: []*observe.Observer{collector.Observer()},
	})
	if err != nil {
		return nil, err
	}
	p.elector, err = leader.New(p.registry, "scheduler", nil)
	return p, err
}

// stop releases what is held.
func (p *process) stop(ctx context.Context) error {
	return errors.Join(p.registry.Close(ctx), p.pool.Close())
}

// requests works on shopping carts, some of which many requests are for.
func (p *process) requests(ctx context.Context) {
	for sleep(ctx, vary(100*time.Millisecond)) {
		cart := fmt.Sprintf("cart/%d", min(rand.IntN(40), rand.IntN(40)))
		p.locked(ctx, cart, time.Second, 25*time.Millisecond)
	}
}

// reports holds locks for seconds, so that they are renewed.
func (p *process) reports(ctx context.Context) {
	for n := 0; sleep(ctx, vary(time.Second)); n++ {
		p.locked(ctx, fmt.Sprintf("report/%d", n%8), time.Second, 10*time.Second)
	}
}

// ticks runs what one process is to run, and the others are to skip.
func (p *process) ticks(ctx context.Context) {
	for sleep(ctx, vary(time.Second)) {
		p.locked(ctx, "tick", 0, 400*time.Millisecond)
	}
}

// crowd has callers want one lock, all at the same time.
func (p *process) crowd(ctx context.Context) {
	for sleep(ctx, vary(50*time.Millisecond)) {
		p.locked(ctx, "stock", 5*time.Second, 150*time.Millisecond)
	}
}

// leads has the process lead whenever it can.
func (p *process) leads(ctx context.Context) {
	_ = p.elector.Run(ctx, func(ctx context.Context, _ *sqllock.Lease) error {
		<-ctx.Done()
		return nil
	})
}

// locked holds a lock for a time, if it gets it. What goes wrong is in the metrics.
func (p *process) locked(ctx context.Context, key string, wait, hold time.Duration) {
	lease, err := p.registry.TryLockFor(ctx, key, wait)
	if err != nil {
		return
	}
	sleep(lease.Context(), vary(hold)) //nolint:contextcheck // it is made from ctx
	_ = lease.Unlock(context.WithoutCancel(ctx))
}

// vary returns a duration of half to three halves of another one.
func vary(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// sleep reports whether ctx lasts for a time.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
