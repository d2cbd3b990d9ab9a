package server

import "testing"

func TestPgbouncerTarget(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"postgres://me@db:5433/x?sslmode=disable": "host=db port=5433 user='me'",
		"postgres://me:it%27s@[::1]:1/x":          "host=::1 port=1 user='me' password='it''s'",
		"postgres:///x?host=/run/postgresql":      "",
		"postgres://me@db/x":                      "host=db port=5432 user='me'",
		"postgres://db/x":                         "",
		"host=db port=5432":                       "",
	} {
		got, err := pgbouncerTarget(url)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, error %v; not %q", url, got, err, want)
		}
	}
}
