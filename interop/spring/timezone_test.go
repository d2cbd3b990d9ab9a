//go:build interop

package spring_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/interop/spring/javaclient"
)

// TestTimeZones gives every party another time zone: the JVM, Java's session, ours
// and our driver. A shift would be of hours, and each assertion is of minutes.
func TestTimeZones(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		jvm := start(t, c.generation, &javaclient.Options{JVM: []string{"-Duser.timezone=Asia/Kathmandu"}}) // +05:45
		parameters := map[string]string{}                                                                   // PostgreSQL's driver makes the JVM's zone the session's by itself
		goParameters := map[string]string{"timezone": "America/St_Johns"}
		if c.db.Name == "mysql" {
			parameters["sessionVariables"] = "time_zone='-03:30'"
			goParameters = map[string]string{"time_zone": "'+09:30'", "loc": "Pacific/Chatham", "parseTime": "true"}
		}
		c.db.DSN = c.db.With(t, goParameters)
		java := c.javaIn(t, jvm, javaclient.Settings{TTL: long, Idle: idle, Parameters: parameters}).Thread("a")

		must(t, java.Lock(ctx, key))
		c.wantUnshifted(t)
		must(t, java.Renew(ctx, key))
		c.wantUnshifted(t)
		must(t, java.Unlock(ctx, key))

		lease, err := c.lock(t, long).TryLock(ctx)
		must(t, err)
		wantNoLock(t, java)
		must(t, lease.Unlock(ctx))
	})
}

// TestADriverThatConverts tells MariaDB's driver to convert instants from the JVM's
// zone to the server's. A version with the fault gives it instants, and all others
// digits that it leaves alone.
func TestADriverThatConverts(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, c *cell) {
		if c.db.Name != "mysql" {
			t.Skip("PostgreSQL's driver has no such setting")
		}
		ctx := patiently(t)
		jvm := start(t, c.generation, &javaclient.Options{JVM: []string{"-Duser.timezone=Asia/Kathmandu"}}) // +05:45
		java := c.javaIn(t, jvm, javaclient.Settings{TTL: long, Parameters: map[string]string{
			"connectionTimeZone": "UTC", "preserveInstants": "true",
		}}).Thread("a")
		must(t, java.Lock(ctx, key))
		if safe(t, jvm) {
			c.wantUnshifted(t)
		} else if row := c.row(t, long); row.Left > -5*time.Hour {
			t.Errorf("the row has %v left; has the fault gone?", row.Left)
		}
		must(t, java.Unlock(ctx, key))
	})
}

// wantUnshifted wants Java's row to be as old as it is, and to end when it does.
func (c *cell) wantUnshifted(t *testing.T) {
	t.Helper()
	row := c.row(t, long)
	if row.Age < -time.Second || row.Age > long/2 || row.Left < long/2 || row.Left > long+time.Second {
		t.Errorf("Java's fresh row is %v old and has %v left of %v", row.Age, row.Left, long)
	}
	_, err := c.lock(t, long).TryLock(t.Context())
	wantHeld(t, err)
}

// TestSummerTimeBegins has the clocks of the JVM go forward within a lease: the hour
// that Java would call the present one does not exist.
func TestSummerTimeBegins(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		change := time.Now().Add(2 * short).Truncate(time.Second) // Java wants a whole one
		jvm := start(t, c.generation, &javaclient.Options{Gap: change})
		java := c.javaIn(t, jvm, javaclient.Settings{TTL: long}).Thread("a")
		must(t, java.Lock(ctx, key))
		c.wantUnshifted(t)
		await(t, change)
		c.wantUnshifted(t)
		must(t, java.Renew(ctx, key))
		if safe(t, jvm) {
			c.wantUnshifted(t)
		} else if row := c.row(t, long); row.Left < 50*time.Minute {
			t.Errorf("renewed in the missing hour, the row has %v left; has the fault gone?", row.Left)
		}
		must(t, java.Unlock(ctx, key))
	})
}

// TestInTheMissingHour has Java try a lock that we hold. In that hour a version with
// the fault takes live rows of everybody's, which the documents warn of.
func TestInTheMissingHour(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		// So long ago that also the earliest creation of a live row is in that hour.
		change := time.Now().Add(-5 * long).Truncate(time.Second)
		jvm := start(t, c.generation, &javaclient.Options{Gap: change})
		java := c.javaIn(t, jvm, javaclient.Settings{TTL: long}).Thread("a")
		lease, err := c.lock(t, long).TryLock(ctx)
		must(t, err)
		locked, err := java.TryLock(ctx, key, 0)
		must(t, err)
		if safe(t, jvm) {
			if locked {
				t.Error("Java takes our live row")
			}
			must(t, lease.Unlock(ctx))
			return
		}
		if !locked {
			t.Error("Java does not take our live row; has the fault gone?")
		}
		if err := lease.Unlock(ctx); !errors.Is(err, sqllock.ErrLockLost) {
			t.Errorf("Unlock: %v", err)
		}
	})
}

// safe tells whether the version is without the fault of summer time, which is shown
// where it still is.
func safe(t *testing.T, jvm *javaclient.JVM) bool {
	t.Helper()
	version, err := jvm.Version(patiently(t))
	must(t, err)
	t.Logf("Spring Integration %s: without the fault of summer time: %v", version, without(t, version))
	return without(t, version)
}

// without tells whether a version is without the fault, GH-10906.
func without(t *testing.T, version string) bool {
	t.Helper()
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil {
		t.Fatalf("version %q: %v", version, err)
	}
	switch {
	case major == 6 && minor == 5:
		return patch >= 9
	case major == 7 && minor == 0:
		return patch >= 5
	default:
		return major >= 7
	}
}

// await returns when the instant is there: of all things to wait for, only time
// itself brings it.
func await(t *testing.T, instant time.Time) {
	t.Helper()
	select {
	case <-time.After(time.Until(instant)):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

func wantHeld(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, sqllock.ErrNotAcquired) {
		t.Errorf("we get a lock that Java holds: %v", err)
	}
}
