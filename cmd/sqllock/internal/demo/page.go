package demo

import (
	"context"
	"errors"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/serve"
	"github.com/sqllock/sqllock/monitor/page"
)

// freePort is where the page of a demo listens.
const freePort = "127.0.0.1:0"

// servePage shows the locks of a demo in a browser, until stop is called. The page is read-only.
func servePage(ctx context.Context, o *options, w *workspace) (url string, stop func() error, err error) {
	repository, err := w.flags.Repository(ctx, w.connection, sqllock.RepositoryOptions{ClientID: "page", TTL: o.ttl})
	if err != nil {
		return "", nil, err
	}
	registry, err := sqllock.NewRegistry(repository, nil)
	if err != nil {
		return "", nil, err
	}
	server, err := serve.Listen(ctx, freePort, page.Handler(registry, &page.Options{Title: "sqllock demo", Names: []string{lockKey}}))
	if err != nil {
		return "", nil, err
	}
	ctx, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	return server.URL(), func() error {
		end()
		return errors.Join(<-ended, registry.Close(context.WithoutCancel(ctx)))
	}, nil
}
