package server

import "context"

// The settings that the other servers turn off. If an option is given twice, the last one
// applies.
var (
	durablePostgres = settings("fsync=on", "synchronous_commit=on", "full_page_writes=on")
	durableMariaDB  = []string{"--innodb-flush-log-at-trx-commit=1", "--innodb-doublewrite=ON"}
)

// StartDurablePostgres is [StartPostgres] with a server that loses no committed transaction.
// After [Server.Kill], the server of StartPostgres may have lost the most recent ones.
func StartDurablePostgres(ctx context.Context, dir string) (*Server, error) {
	recipe, err := postgresHere(ctx)
	if err != nil {
		return nil, err
	}
	return Start(ctx, recipe.with(durablePostgres...), dir)
}

// StartDurableMariaDB is [StartMariaDB] with a server that loses no committed transaction.
func StartDurableMariaDB(ctx context.Context, dir string) (*Server, error) {
	daemon, err := ensureMariaDB(ctx)
	if err != nil {
		return nil, err
	}
	return Start(ctx, mariadb(daemon).with(durableMariaDB...), dir)
}

// with returns the recipe with additional arguments for the server.
func (r Recipe) with(arguments ...string) Recipe {
	serve := r.Serve
	r.Serve = func(dir string, port int) []string { return append(serve(dir, port), arguments...) }
	return r
}
