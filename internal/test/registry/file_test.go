package registry_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/virtual"
)

// If the file is removed, and another process makes a new one, both have all locks. The holders of the old
// one lose theirs at their next renewal, and nothing more is acquired in it.
func TestFile_Replaced(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(path string) error{
		"removed": os.Remove,
		"replaced": func(path string) error {
			content, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path+".new", content, 0o600), os.Rename(path+".new", path))
		},
	} {
		runInBubble(t, name, func(t *testing.T) {
			db := virtual.Migrated(t, dialect.Spring7)
			registry := newRegistry(t, newRepository(t, db.DB, nil), &sqllock.RegistryOptions{TTL: ttl})
			renewed := locked(t, obtain(t, registry, "renewed").WithAutoRenew(true))
			byHand := locked(t, obtain(t, registry, "by hand"))
			guarded := locked(t, obtain(t, registry, "guarded"))
			must(t, replace(db.Path))

			is(t, byHand.Renew(t.Context()), sqllock.ErrLockLost)
			tx := check.Value(db.DB.BeginTxx(t.Context(), nil))(t)
			is(t, guarded.Guard(t.Context(), tx), sqllock.ErrLockLost)
			must(t, tx.Rollback())
			is(t, check.ErrorOf(registry.TryLock(t.Context(), "free")), sqllock.ErrSchema)
			select {
			case <-renewed.Context().Done():
			case <-time.After(ttl / 2):
				t.Error("renewed in a file that no other process sees")
			}
			for _, lease := range []*sqllock.Lease{renewed, byHand, guarded} {
				is(t, lease.Unlock(t.Context()), sqllock.ErrLockLost)
			}
		})
	}
}
