package report

import "testing"

func TestHasLease(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"sqllock open/pgx": true, "pglock/pgx": true, "go-pglock/pq": false, "GET_LOCK": false, "spring 7/postgres": true, "redislock": true, "raw statements/pgx": false,
	} {
		if got := hasLease(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
