package load

import (
	"context"

	"github.com/sqllock/sqllock/dev/bench/internal/contender"
	"github.com/sqllock/sqllock/dev/bench/internal/durable"
	"github.com/sqllock/sqllock/dev/bench/internal/proxy"
	"github.com/sqllock/sqllock/dev/bench/internal/record"
)

var protocols = map[string]proxy.Protocol{durable.Postgres: proxy.PostgreSQL, durable.MariaDB: proxy.MySQL}

// wire counts the round trips and statements of a pair of one worker, after warming up.
func wire() Load {
	return Load{Name: "wire", Remote: true, Run: func(ctx context.Context, a *Arena, c contender.Contender) (round record.Round, err error) {
		server := a.servers[c.Database]
		counter, err := proxy.NewCounter(ctx, server.Address(), protocols[c.Database])
		if err != nil {
			return round, err
		}
		defer counter.Close()
		at := a.Place(c)
		at.DSN = server.DSN(counter.Address)
		err = during(ctx, c, at, func(session contender.Session) error {
			count, err := countPairs(ctx, session, counter)
			if protocols[c.Database] == proxy.Opaque {
				delete(count, "statements_per_pair")
			}
			round.Values = count
			return err
		})
		return round, err
	}}
}

func countPairs(ctx context.Context, session contender.Session, counter *proxy.Counter) (map[string]float64, error) {
	const warm, counted = 10, 50
	for i := range warm + counted {
		if i == warm {
			counter.Count() // what comes now is counted
		}
		if err := pair(ctx, session, "wire"); err != nil {
			return nil, err
		}
	}
	count := counter.Count()
	return map[string]float64{
		"statements_per_pair":  float64(count.Statements) / counted,
		"round_trips_per_pair": float64(count.RoundTrips) / counted,
		"connections":          float64(count.Connections),
	}, nil
}
