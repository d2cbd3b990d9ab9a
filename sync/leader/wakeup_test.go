package leader_test

import (
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	fixtures "github.com/sqllock/sqllock/internal/test/fixture"
	"github.com/sqllock/sqllock/sync/leader"
)

// TestAWakeUpMovesTheRoleAtOnce has candidates that poll once an hour.
func TestAWakeUpMovesTheRoleAtOnce(t *testing.T) {
	inBubble(t, func(f *fixture) {
		released := new(fixtures.Waker)
		of := sqllock.RegistryOptions{TTL: 3 * time.Hour, IdleBetweenTries: time.Hour, Waker: released}
		a, b := f.processWith("a", leader.Options{}, of), f.processWith("b", leader.Options{}, of)
		first := a.start(a.lead)
		<-a.began
		b.start(b.lead)
		time.Sleep(10 * time.Second)
		began := time.Now()
		for range 3 {
			f.Must(a.Resign(f.Context()))
			released.WakeAll()
			<-b.began
			time.Sleep(10 * time.Second) // a sees that b leads
			f.Must(b.Resign(f.Context()))
			released.WakeAll()
			<-a.began
			time.Sleep(10 * time.Second)
		}
		f.Is(first.stop(), errStop)
		released.WakeAll()
		<-b.began
		f.Takes("everything", began, time.Minute, time.Minute)
	})
}
