package dashboard

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/drivers/pgxlock"
	sqllockotel "github.com/sqllock/sqllock/monitor/otel"
	sqllockprom "github.com/sqllock/sqllock/monitor/prometheus"
	"github.com/sqllock/sqllock/observe"
)

// open is what docs/observability.md begins with.
func open(dsn string) error {
	ctx := context.Background()
	metrics := sqllockprom.New(nil) // github.com/sqllock/sqllock/monitor/prometheus
	prometheus.MustRegister(metrics)

	traces, err := sqllockotel.New(nil) // github.com/sqllock/sqllock/monitor/otel: traces, and the same metrics
	if err != nil {
		return err
	}
	registry, err := pgxlock.Open(ctx, dsn, &pgxlock.Options{
		Repository: sqllock.RepositoryOptions{
			Observers: []*observe.Observer{metrics.Observer(), traces, observe.SlogObserver(nil)},
		},
	})
	if err != nil {
		return err
	}
	return registry.Close(ctx)
}

// TestTheExampleOpens gives it a DSN that is none.
func TestTheExampleOpens(t *testing.T) {
	t.Parallel()
	if err := open("\n"); err == nil {
		t.Error("a line break was accepted")
	}
}
