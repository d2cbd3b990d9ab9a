//go:build interop

package spring_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
	"github.com/sqllock/sqllock/internal/test/check"
)

// TestTimeZones uses different time zones for the JVM, Java's session, sqllock's session and its
// driver. A wrong conversion would shift instants by hours; the checks allow minutes.
func TestTimeZones(t *testing.T) {
	t.Parallel()
	migrated(t, drivers, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		jvm := sharedIn(t, c.generation, "Asia/Kathmandu") // +05:45
		parameters := map[string]string{}                  // PostgreSQL's driver uses the JVM's zone for the session
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

		lease := check.Value(c.lock(t, long).TryLock(ctx))(t)
		wantNoLock(t, java)
		must(t, lease.Unlock(ctx))
	})
}

// TestADriverThatConverts configures MariaDB's driver and MySQL's to convert instants from the JVM's zone to
// another one. Versions with GH-10906 pass instants to the driver; all others pass date and
// time without a zone, which the driver does not convert. A JVM in UTC is no remedy if the
// other zone is not UTC, too.
func TestADriverThatConverts(t *testing.T) {
	t.Parallel()
	for name, zones := range map[string]struct {
		jvm, connection string
		late            bool
	}{
		"early":        {"Asia/Karachi", "UTC", false}, // +05:00
		"early in UTC": {"UTC", "-05:00", false},
		"late in UTC":  {"UTC", "+05:00", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			migrated(t, append(ofMySQL, usual[1:]...), func(t *testing.T, c *cell) {
				jvm := sharedIn(t, c.generation, zones.jvm)
				java := c.javaIn(t, jvm, javaclient.Settings{TTL: long, Parameters: map[string]string{
					"connectionTimeZone": zones.connection, "preserveInstants": "true",
				}}).Thread("a")
				switch {
				case safe(t, jvm):
					must(t, java.Lock(patiently(t), key))
					c.wantUnshifted(t)
				case zones.late:
					c.wantLate(t, java)
				default:
					c.wantEarly(t, java)
				}
			})
		})
	}
}

// wantLate checks that Java takes over our live row, as its times are hours late, and that doctor reports that.
func (c *cell) wantLate(t *testing.T, java *javaclient.Thread) {
	t.Helper()
	must(t, check.ErrorOf(c.lock(t, long).TryLock(t.Context())))
	wantLock(t, java)
	if row := c.row(t, long); row.Left < 4*time.Hour {
		t.Errorf("the row has %v left; has the fault gone?", row.Left)
	}
	c.wantNoticed(t, java, "another program has written a CREATED_DATE in the future, by up to 5h0m (1 row, of ")
}

// wantEarly checks that we would take over Java's live row, as its times are hours early,
// and that doctor reports that.
func (c *cell) wantEarly(t *testing.T, java *javaclient.Thread) {
	t.Helper()
	must(t, java.Lock(patiently(t), key))
	if row := c.row(t, long); row.Left > -4*time.Hour {
		t.Errorf("the row has %v left; has the fault gone?", row.Left)
	}
	c.wantNoticed(t, java, "another program has just written times that had expired before, by up to 5h0m (1 row, of ")
}

// wantNoticed checks what `sqllock doctor` reports of the times of a Java thread that goes on renewing its lock.
func (c *cell) wantNoticed(t *testing.T, java *javaclient.Thread, report string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	renewed := check.Begin(func() error {
		for ; ctx.Err() == nil; time.Sleep(idle) {
			if err := java.Renew(context.WithoutCancel(ctx), key); err != nil { // the end of ctx would cut one short
				return err
			}
		}
		return nil
	})
	text, err := c.try(t, "doctor")
	if cancel(); err == nil || !strings.Contains(string(text), "✗ times        "+report) {
		t.Errorf("doctor: %v\n%s", err, text)
	}
	must(t, <-renewed)
}

// wantUnshifted checks the age and the remaining time of Java's row.
func (c *cell) wantUnshifted(t *testing.T) {
	t.Helper()
	row := c.row(t, long)
	if row.Age < -time.Second || row.Age > long/2 || row.Left < long/2 || row.Left > long+time.Second {
		t.Errorf("Java's fresh row is %v old and has %v left of %v", row.Age, row.Left, long)
	}
	_, err := c.lock(t, long).TryLock(t.Context())
	wantHeld(t, err)
}

// TestSummerTimeBegins lets the clocks of the JVM go forward during a lease: in local time, the
// present hour does not exist.
func TestSummerTimeBegins(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		change := time.Now().Add(2 * short).Truncate(time.Second) // Java needs a whole second
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

// TestInTheMissingHour lets Java try to acquire a lock that sqllock holds. In that hour, versions
// with GH-10906 take over rows that have not expired; docs/spring.md warns of this.
func TestInTheMissingHour(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		// Early enough that all unexpired rows were created within that hour.
		change := time.Now().Add(-5 * long).Truncate(time.Second)
		jvm := start(t, c.generation, &javaclient.Options{Gap: change})
		java := c.javaIn(t, jvm, javaclient.Settings{TTL: long}).Thread("a")
		lease := check.Value(c.lock(t, long).TryLock(ctx))(t)
		locked := check.Value(java.TryLock(ctx, key, 0))(t)
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
		check.Is(t, lease.Unlock(ctx), sqllock.ErrLockLost)
	})
}

// safe reports whether the version is free of the summer-time bug. If it is not, the test checks
// that the bug is there.
func safe(t *testing.T, jvm *javaclient.JVM) bool {
	t.Helper()
	version := check.Value(jvm.Version(patiently(t)))(t)
	t.Logf("Spring Integration %s: without the fault of summer time: %v", version, without(t, version))
	return without(t, version)
}

// without reports whether a version is free of the bug GH-10906.
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

// await waits until an instant: there is no event to wait for.
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
	check.Is(t, err, sqllock.ErrNotAcquired)
}
