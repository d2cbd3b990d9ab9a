package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/bench/internal/contender"
	"github.com/sqllock/sqllock/dev/bench/internal/record"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/fakedb"
)

// memory measures the cost of unused lock objects, and the memory of the cache while many more
// keys pass through it than it keeps.
func memory() Load {
	return Load{
		Name:  "memory",
		Field: []contender.Contender{{Name: "sqllock registry", Library: "github.com/sqllock/sqllock", Version: "this checkout"}},
		Run: func(ctx context.Context, a *Arena, _ contender.Contender) (record.Round, error) {
			bytes, err := bytesPerObject(ctx, a.Settings.Objects/10)
			if err != nil {
				return record.Round{}, err
			}
			values, err := throughCache(ctx, a.Settings.Objects)
			if err == nil {
				values["bytes_per_object"] = bytes
			}
			return record.Round{Values: values}, err
		},
	}
}

// withRegistry opens a registry over a fake database.
func withRegistry(ctx context.Context, capacity int, task func(*sqllock.Registry) error) error {
	db := fakedb.Open()
	repository, err := sqllock.NewRepository(ctx, db, dialect.Postgres(), &sqllock.RepositoryOptions{Layout: dialect.Spring7})
	if err != nil {
		return errors.Join(err, db.Close())
	}
	registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{CacheCapacity: capacity})
	if err != nil {
		return errors.Join(err, db.Close())
	}
	return errors.Join(task(registry), registry.Close(ctx), db.Close())
}

// bytesPerObject returns the memory of one lock object without the text of its key.
func bytesPerObject(ctx context.Context, n int) (bytes float64, err error) {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("orders/%d", i)
	}
	err = withRegistry(ctx, n, func(registry *sqllock.Registry) error {
		before := inUse()
		for _, key := range keys {
			if _, err := registry.Obtain(key); err != nil {
				return err
			}
		}
		bytes = (inUse() - before) / float64(n)
		return nil
	})
	runtime.KeepAlive(keys)
	return bytes, err
}

// throughCache obtains n different keys from a registry that keeps a tenth of them. It measures
// the memory when the cache is full, half-way and at the end.
func throughCache(ctx context.Context, n int) (map[string]float64, error) {
	values := make(map[string]float64)
	err := withRegistry(ctx, n/10, func(registry *sqllock.Registry) error {
		empty := inUse()
		for i := range n {
			if _, err := registry.Obtain(fmt.Sprintf("orders/%d", i)); err != nil {
				return err
			}
			switch i + 1 {
			case n / 10:
				values["full_mb"] = (inUse() - empty) / 1e6
			case n / 2:
				values["half_mb"] = (inUse() - empty) / 1e6
			}
		}
		values["end_mb"] = (inUse() - empty) / 1e6
		return nil
	})
	return values, err
}

// inUse returns the reachable memory in bytes.
func inUse() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
