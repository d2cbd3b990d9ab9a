package load

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/sqllock/sqllock/dev/bench/internal/contender"
	"github.com/sqllock/sqllock/dev/bench/internal/record"
)

// delay measures pairs on a network whose round trips take a millisecond longer.
func delay(workers int) Load {
	return Load{
		Name:   fmt.Sprintf("delay %d", workers),
		Remote: true,
		Run: func(ctx context.Context, a *Arena, c contender.Contender) (record.Round, error) {
			server := a.servers[c.Database]
			slow, err := slowly(server.Address(), time.Millisecond)
			if err != nil {
				return record.Round{}, err
			}
			defer slow.Stop()
			at := a.Place(c)
			at.DSN = server.DSN(slow.Listen)
			return a.pairs(ctx, c, at, workers)
		},
	}
}

// slowly starts a proxy in front of the target. It delays the answers, as a longer way would.
func slowly(target string, delay time.Duration) (*toxiproxy.Proxy, error) {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := toxiproxy.NewProxy(server, "slow", "127.0.0.1:0", target)
	if err := p.Start(); err != nil {
		return nil, err
	}
	toxic := fmt.Sprintf(`{"type": "latency", "stream": "downstream", "attributes": {"latency": %d}}`, delay.Milliseconds())
	if _, err := p.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}
