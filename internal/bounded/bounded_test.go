package bounded_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

func TestAResultInTime(t *testing.T) {
	t.Parallel()
	failure := errors.New("failure")
	got, err := bounded.Do(t.Context(), 0, func() (int, error) { return 7, failure }, nil)
	if got != 7 || !errors.Is(err, failure) {
		t.Fatal(got, err)
	}
}

// The error of a driver that checks its context says more than ErrNoAnswer.
func TestAResultWithinTheGracePeriod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		got, err := bounded.Do(ctx, time.Second, func() (int, error) {
			<-ctx.Done()
			time.Sleep(999 * time.Millisecond)
			return 7, nil
		}, nil)
		if got != 7 || err != nil {
			t.Fatal(got, err)
		}
	})
}

func TestALateResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began, late := time.Now(), make(chan int, 1)
		got, err := bounded.Do(ctx, time.Second, func() (int, error) {
			time.Sleep(time.Minute)
			return 7, nil
		}, func(got int, _ error) { late <- got })
		if got != 0 || !errors.Is(err, bounded.ErrNoAnswer) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(got, err)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("took %v", took)
		}
		if got := <-late; got != 7 {
			t.Errorf("late %v", got)
		}
	})
}
