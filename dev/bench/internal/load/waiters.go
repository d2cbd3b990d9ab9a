package load

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sqllock/sqllock/dev/bench/internal/contender"
	"github.com/sqllock/sqllock/dev/bench/internal/durable"
	"github.com/sqllock/sqllock/dev/bench/internal/parallel"
	"github.com/sqllock/sqllock/dev/bench/internal/record"
	"github.com/sqllock/sqllock/internal/test/proc"
)

// waiters measures what waiting costs the server: one process holds a thousand keys and another
// one waits for them. The cost without waiters is measured before, since holders may cost
// something too.
func waiters() Load {
	return Load{Name: "waiters", Remote: true, Run: func(ctx context.Context, a *Arena, c contender.Contender) (round record.Round, err error) {
		server := a.servers[c.Database]
		at := a.Place(c)
		at.TTL = time.Minute
		all := at
		all.Alone = true
		err = during(ctx, c, all, func(holder contender.Session) error {
			unlocks, err := a.lockAll(ctx, holder)
			if err != nil {
				return err
			}
			alone, err := a.watch(ctx, server)
			if err != nil {
				return err
			}
			apart := at
			apart.Apart = true
			err = during(ctx, c, apart, func(waiter contender.Session) error {
				waiting, stop := context.WithCancel(ctx)
				gone := a.wait(waiting, waiter)
				defer func() {
					stop()
					gone.Wait()
				}()
				time.Sleep(a.Settings.Limit / 2) // the first tries are over, and in the statistics
				with, err := a.watch(ctx, server)
				round.Values = increase(alone, with)
				return err
			})
			return errors.Join(err, parallel.Do(len(unlocks), atOnce, func(i int) error { return unlocks[i](ctx) }))
		})
		return round, err
	}}
}

// atOnce is how many locks a load acquires or releases at a time.
const atOnce = 16

func waitersKey(i int) string { return fmt.Sprintf("waiters-%d", i) }

func (a *Arena) lockAll(ctx context.Context, session contender.Session) ([]contender.Unlock, error) {
	unlocks := make([]contender.Unlock, a.Settings.Waiters)
	return unlocks, parallel.Do(len(unlocks), atOnce, func(i int) (err error) {
		unlocks[i], err = session.Lock(ctx, waitersKey(i))
		return err
	})
}

// wait waits for each key in a worker of its own until ctx ends.
func (a *Arena) wait(ctx context.Context, session contender.Session) *sync.WaitGroup {
	var all sync.WaitGroup
	for i := range a.Settings.Waiters {
		all.Go(func() {
			if unlock, err := session.Lock(ctx, waitersKey(i)); err == nil {
				_ = unlock(context.WithoutCancel(ctx))
			}
		})
	}
	return &all
}

// watch returns the increase of a server's counters during a measurement.
func (a *Arena) watch(ctx context.Context, server *durable.Server) (map[string]float64, error) {
	before, err := a.counters(ctx, server)
	if err != nil {
		return nil, err
	}
	time.Sleep(a.Settings.Measure)
	after, err := a.counters(ctx, server)
	for name := range after {
		after[name] -= before[name]
	}
	return after, err
}

// increase returns the cost per second of holders and of waiters.
func increase(alone, with map[string]float64) map[string]float64 {
	values := make(map[string]float64)
	for name, value := range with {
		values[name+"_per_s"] = value / with["seconds"]
		values["holders_"+name+"_per_s"] = alone[name] / alone["seconds"]
	}
	return values
}

var written = map[string]string{
	durable.Postgres: `SELECT 'wal_bytes', CAST(pg_current_wal_insert_lsn() - '0/0' AS BIGINT)
		UNION ALL SELECT 'rows_written', CAST(COALESCE(SUM(n_tup_ins + n_tup_upd + n_tup_del), 0) AS BIGINT) FROM pg_stat_user_tables`,
	durable.MariaDB: "SHOW GLOBAL STATUS WHERE Variable_name IN ('Innodb_lsn_current', 'Handler_write')",
}

// names of MariaDB's counters where PostgreSQL has the like.
var renamed = map[string]string{"Innodb_lsn_current": "wal_bytes", "Handler_write": "rows_written"}

func (a *Arena) counters(ctx context.Context, server *durable.Server) (map[string]float64, error) {
	all := map[string]float64{
		"seconds":   time.Duration(proc.Now()).Seconds(),
		"cpu_ms":    millis(server.CPU()),
		"log_lines": float64(server.LogLines()),
	}
	err := server.Ask(func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, written[server.Kind])
		if err != nil {
			return err
		}
		defer rows.Close() //nolint:errcheck // rows.Err has the error
		for rows.Next() {
			var name string
			var n float64
			if err := rows.Scan(&name, &n); err != nil {
				return err
			}
			if better := renamed[name]; better != "" {
				name = better
			}
			all[name] = n
		}
		return rows.Err()
	})
	return all, err
}
