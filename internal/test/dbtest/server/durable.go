package server

import (
	"context"
	"fmt"
)

// The settings that the other servers turn off.
var (
	durablePostgres = settings("fsync=on", "synchronous_commit=on", "full_page_writes=on")
	durableMariaDB  = []string{"--innodb-flush-log-at-trx-commit=1", "--innodb-doublewrite=ON"}
)

// DurablePostgres is the recipe of [StartPostgres] for a server that loses no committed transaction.
// After [Server.Kill], the server of StartPostgres may have lost the most recent ones.
func DurablePostgres(ctx context.Context) (Recipe, error) {
	recipe, err := postgresHere(ctx)
	return recipe.With(durablePostgres...), err
}

// DurablePostgresNewest is the recipe of [StartPostgresNewest], with the data in dir, for such a server.
func DurablePostgresNewest(ctx context.Context, dir string) (Recipe, error) {
	recipe, err := postgresOf(ctx, dir, newestSuite, newestVersion)
	return recipe.With(durablePostgres...), err
}

// DurableMariaDB is the recipe of [StartMariaDB] for a server that loses no committed transaction.
func DurableMariaDB(ctx context.Context) (Recipe, error) {
	recipe, err := mariadbHere(ctx)
	return recipe.With(durableMariaDB...), err
}

// DurableOracleMySQL is the recipe of [StartOracleMySQL] for a server that loses no committed transaction.
func DurableOracleMySQL(ctx context.Context) (Recipe, error) {
	root, err := FetchOracleMySQL(ctx)
	if err != nil {
		return Recipe{}, fmt.Errorf("find Oracle's MySQL: %w", err)
	}
	return oracleMySQL(root).With(durableMariaDB...).With("--sync-binlog=1"), nil
}

// StartDurablePostgres starts a server by the recipe of [DurablePostgres].
func StartDurablePostgres(ctx context.Context, dir string) (*Server, error) {
	return startBy(ctx, DurablePostgres, dir)
}

// StartDurableMariaDB starts a server by the recipe of [DurableMariaDB].
func StartDurableMariaDB(ctx context.Context, dir string) (*Server, error) {
	return startBy(ctx, DurableMariaDB, dir)
}

// With returns the recipe with additional arguments for the server. If an option is given twice, the last one applies.
func (r Recipe) With(arguments ...string) Recipe {
	serve := r.Serve
	r.Serve = func(dir string, port int) []string { return append(serve(dir, port), arguments...) }
	return r
}
