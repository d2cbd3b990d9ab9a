package riverlock_test

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/sqllock/sqllock"
	riverlock "github.com/sqllock/sqllock/adapters/river"
)

// readme is the code of README.md. The compiler checks it; the tests run the same calls.
var _ = readme

func readme(pool *pgxpool.Pool, workers *river.Workers, registry *sqllock.Registry) (*river.Client[pgx.Tx], error) {
	oneAtATime := riverlock.Middleware(registry, func(job *rivertype.JobRow) string { return job.Kind }, nil)
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Middleware: []rivertype.Middleware{oneAtATime},
		Queues:     map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 10}},
		Workers:    workers,
	})
	return client, err
}
