//go:build interop

package spring_test

import (
	"errors"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
	"github.com/sqllock/sqllock/sync/rwlock"
)

// TestJavaAndReadersAndWriters has Java's lock of the key keep out writers and new readers. A writer
// keeps Java out; readers do not.
func TestJavaAndReadersAndWriters(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		java := c.java(t, javaclient.Settings{TTL: long, ClientID: "billing-java"}).Thread("a")
		ours, err := rwlock.New(c.registry(t, long), key)
		must(t, err)

		reader, err := ours.TryRLock(ctx)
		must(t, err)
		must(t, java.Lock(ctx, key)) // it does not wait for the reader
		for name, try := range map[string]func() (*sqllock.Lease, error){
			"reader": func() (*sqllock.Lease, error) { return ours.TryRLock(ctx) },
			"writer": func() (*sqllock.Lease, error) { return ours.TryLock(ctx) },
		} {
			var held *sqllock.HeldError
			if _, err := try(); !errors.As(err, &held) || held.Holder == "" {
				t.Errorf("beside Java, a %s: %v", name, err)
			}
		}
		must(t, java.Unlock(ctx, key))
		must(t, reader.Unlock(ctx))

		writer, err := ours.TryLock(ctx)
		must(t, err)
		wantNoLock(t, java)
		must(t, writer.Unlock(ctx))
		wantLock(t, java)
		must(t, java.Unlock(ctx, key))
	})
}
