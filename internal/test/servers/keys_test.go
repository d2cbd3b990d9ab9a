package servers_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/migrations"
)

// allDatabases returns a migrated database of every kind that is there.
func allDatabases(f *testing.F) []*dbtest.DB {
	f.Helper()
	all := []*dbtest.DB{dbtest.SQLite(f)}
	if os.Getenv(server.PostgresVariable) != "" {
		all = append(all, dbtest.Postgres(f))
	}
	if os.Getenv(server.MySQLVariable) != "" {
		all = append(all, dbtest.MySQL(f))
	}
	for _, db := range all {
		must(f, migrations.Up(f.Context(), db.DB.DB, db.Dialect, nil))
	}
	return all
}

// FuzzRows: two keys that differ have rows of their own, whatever a database makes of case, accents, blanks and
// characters of its own language, and a row gives back the key that went in.
func FuzzRows(f *testing.F) {
	for _, pair := range [][2]string{
		{"k", "K"},
		{"k", "k "},
		{"é", "e"},
		{"é", "e\u0301"},
		{"ß", "ss"},
		{"a'b", "a''b"},
		{`a\b`, "ab"},
		{"%", "_"},
		{"'; DROP TABLE INT_LOCK; --", "x"},
		{"k\x00", "k"},
		{"ı", "i"},
		{"😀", "😁"},
		{":region", "?"},
		{"$1", "$2"},
	} {
		f.Add(pair[0], pair[1])
	}
	dbs := allDatabases(f)
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, db := range dbs {
			for _, mapper := range []sqllock.KeyMapper{sqllock.SpringKeys, sqllock.PlainKeys} {
				r := repository(t, db, &sqllock.RepositoryOptions{Keys: mapper})
				takeBoth(t, r, a, b)
				must(t, r.ReleaseAll(t.Context()))
			}
		}
	})
}

// takeBoth acquires both keys, unless they are none or one.
func takeBoth(t *testing.T, r *sqllock.Repository, keys ...string) {
	t.Helper()
	taken := make(map[string]bool)
	for _, key := range keys {
		lockKey, err := r.LockKey(key)
		if errors.Is(err, sqllock.ErrInvalid) {
			continue
		}
		must(t, err)
		got := check.Value(r.Acquire(t.Context(), key, r.NewHolder(), ttl))(t)
		if got.Acquired == taken[lockKey] {
			t.Fatalf("%q: acquired %v, held %v", key, got.Acquired, taken[lockKey])
		}
		taken[lockKey] = true
		row, ok, err := r.Peek(t.Context(), key)
		must(t, err)
		if !ok || row.LockKey != lockKey {
			t.Fatalf("%q: row %+v", key, row)
		}
	}
	if len(keys) == 2 && keys[0] != keys[1] && len(taken) == 1 && !strings.EqualFold(keys[0], keys[1]) {
		if _, err := r.LockKey(keys[0]); err == nil {
			if _, err := r.LockKey(keys[1]); err == nil {
				t.Fatalf("%q and %q share a row", keys[0], keys[1])
			}
		}
	}
}

// FuzzJointKeys: a list of keys, divided by |, is refused as bad input, or is one lock, which has a row for each of
// its keys and which another process cannot acquire, in whichever order it names them.
func FuzzJointKeys(f *testing.F) {
	for _, list := range []string{"a|b", "k|K|k", "é|e|e\u0301", "a|", "\xff|a", "'; --|\"|\\", "%|_|:key|?|$1", "{\"k\":1}|[]|,", "\x00|a", strings.Repeat("k|", 257)} {
		f.Add(list)
	}
	dbs := allDatabases(f)
	f.Fuzz(func(t *testing.T, list string) {
		keys := strings.Split(list, "|")
		for _, db := range dbs {
			for _, mapper := range []sqllock.KeyMapper{sqllock.SpringKeys, sqllock.PlainKeys} {
				joint := func(keys []string) (*sqllock.Lease, *sqllock.Repository, error) {
					r := repository(t, db, &sqllock.RepositoryOptions{Keys: mapper})
					lock, err := newRegistry(t, r, &sqllock.RegistryOptions{NoRenew: true}).ObtainAll(keys...)
					if err != nil {
						return nil, r, err
					}
					lease, err := lock.TryLock(t.Context())
					return lease, r, err
				}
				lease, r, err := joint(keys)
				if errors.Is(err, sqllock.ErrInvalid) {
					continue
				}
				must(t, err)
				want := make(map[string]bool)
				for _, key := range keys {
					lockKey := check.Value(r.LockKey(key))(t)
					want[lockKey] = true
				}
				reversed := slices.Clone(keys)
				slices.Reverse(reversed)
				rows := check.Value(r.List(t.Context()))(t)
				for _, row := range rows {
					if !want[row.LockKey] || row.Holder != lease.Holder() || len(rows) != len(want) {
						t.Fatalf("%q: %d rows, %+v", keys, len(rows), row)
					}
				}
				if _, _, err := joint(reversed); !errors.Is(err, sqllock.ErrNotAcquired) {
					t.Fatalf("%q: %v", keys, err)
				}
				must(t, lease.Unlock(t.Context()))
				if rows, err = r.List(t.Context()); err != nil || len(rows) != 0 {
					t.Fatalf("%q: left %+v, %v", keys, rows, err)
				}
			}
		}
	})
}

// FuzzOptions: a region, a prefix and a client id are either refused at once or work as they are.
func FuzzOptions(f *testing.F) {
	for _, each := range [][3]string{
		{"DEFAULT", "INT_", "billing-7f9c"}, {"r ", "x.INT_", "a b"}, {"Ж", "", ""}, {"a'b", "INT_;", "c_%"}, {"\x00", "\x00", "\x00"},
	} {
		f.Add(each[0], each[1], each[2])
	}
	dbs := allDatabases(f)
	f.Fuzz(func(t *testing.T, region, prefix, client string) {
		for _, db := range dbs {
			_, err := sqllock.NewRepository(unhurried(t), db.DB.DB, db.Dialect, &sqllock.RepositoryOptions{Prefix: prefix})
			if err != nil && !errors.Is(err, sqllock.ErrInvalid) && !errors.Is(err, sqllock.ErrSchema) {
				t.Fatalf("prefix %q: %v", prefix, err)
			}
			r, err := sqllock.NewRepository(unhurried(t), db.DB.DB, db.Dialect, &sqllock.RepositoryOptions{Region: region, ClientID: client})
			if errors.Is(err, sqllock.ErrInvalid) {
				continue
			}
			must(t, err)
			takeBoth(t, r, "a", "b")
			rows := check.Value(r.List(t.Context()))(t)
			if len(rows) != 2 || rows[0].Region != r.Region() || !strings.HasPrefix(rows[0].Holder, r.ClientID()+"-") {
				t.Fatalf("region %q, client %q: %+v", region, client, rows)
			}
			must(t, r.ReleaseAll(t.Context()))
			if rows, err = r.List(t.Context()); err != nil || len(rows) != 0 {
				t.Fatalf("close left %+v, %v", rows, err)
			}
		}
	})
}
