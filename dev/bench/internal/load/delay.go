package load

import (
	"context"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/dev/bench/internal/contender"
	"github.com/sqllock/sqllock/dev/bench/internal/proxy"
	"github.com/sqllock/sqllock/dev/bench/internal/record"
)

// delay measures pairs on a network whose round trips take a millisecond longer.
func delay(workers int) Load {
	return Load{
		Name:   fmt.Sprintf("delay %d", workers),
		Remote: true,
		Run: func(ctx context.Context, a *Arena, c contender.Contender) (record.Round, error) {
			server := a.servers[c.Database]
			slow, err := proxy.NewSlow(server.Address(), time.Millisecond)
			if err != nil {
				return record.Round{}, err
			}
			defer slow.Close()
			at := a.Place(c)
			at.DSN = server.DSN(slow.Address)
			return a.pairs(ctx, c, at, workers)
		},
	}
}
