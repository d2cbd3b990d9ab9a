package tests_test

import (
	"testing"

	"github.com/caddyserver/certmagic"
	"github.com/go-co-op/gocron/v2"
	"github.com/pressly/goose/v3/lock"

	"github.com/sqllock/sqllock/adapters/certmagiclock"
	"github.com/sqllock/sqllock/adapters/gocronlock"
	"github.com/sqllock/sqllock/adapters/gooselock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/child"
	"github.com/sqllock/sqllock/sync/leader"
)

var (
	must = check.Must
	is   = check.Is
)

func TestMain(m *testing.M) {
	roles := make(map[string]child.Role)
	for name, library := range libraries {
		roles[name] = library.role()
	}
	child.Main(m, roles)
}

// The compiler proves that the adapters have the methods of the real interfaces.
var (
	_ lock.Locker                = (*gooselock.Locker)(nil)
	_ lock.SessionLocker         = (*gooselock.Locker)(nil)
	_ certmagic.Locker           = (*certmagiclock.Locker)(nil)
	_ certmagic.TryLocker        = (*certmagiclock.Locker)(nil)
	_ certmagic.LockLeaseRenewer = (*certmagiclock.Locker)(nil)
	_ gocron.Elector             = (*leader.Elector)(nil)
	_ gocron.Locker              = (*gocronlock.Locker[gocron.Lock])(nil)
)
