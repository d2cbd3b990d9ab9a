//go:build interop

package spring_test

import (
	"archive/zip"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
	"github.com/sqllock/sqllock/internal/test/check"
)

// TestAdoptWhileSpringWorks migrates the table that Spring's own script has created, while one
// Java thread holds a lock and others acquire and release locks.
func TestAdoptWhileSpringWorks(t *testing.T) {
	t.Parallel()
	eachCell(t, usual, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		c.exec(t, c.springsScript(t))
		client := c.java(t, javaclient.Settings{TTL: long, ClientID: "billing-java"})
		holder := client.Thread("holder")
		must(t, holder.Lock(ctx, key))

		type outcome struct {
			javaclient.Result
			err error
		}
		worked := make(chan outcome, 1)
		go func() {
			result, err := client.Bench(ctx, javaclient.Load{Threads: 2, Duration: 5 * time.Second})
			worked <- outcome{result, err}
		}()
		c.awaitRows(t, 2) // at work
		c.migrate(t)
		c.awaitRows(t, 2) // still at work
		got := <-worked
		must(t, got.err)
		if got.Failures > 0 || got.Pairs == 0 {
			t.Errorf("Spring beside the migration: %d pairs, %d failures", got.Pairs, got.Failures)
		}
		t.Logf("%d pairs of Spring's beside the migration", got.Pairs)

		ours := c.lock(t, long)
		var held *sqllock.HeldError
		if _, err := ours.TryLock(ctx); !errors.As(err, &held) || held.Holder != "billing-java" {
			t.Errorf("after the migration we see %v", err)
		}
		must(t, holder.Renew(ctx, key))
		must(t, holder.Unlock(ctx, key))
		must(t, check.Value(ours.TryLock(ctx))(t).Unlock(ctx))
	})
}

// TestSpringsCheckAtTheStart checks that Spring's application context fails to start without the
// table, and starts with the table of package migrations.
func TestSpringsCheckAtTheStart(t *testing.T) {
	t.Parallel()
	eachCell(t, usual, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		_, err := shared(t, c.generation).Open(ctx, javaclient.Settings{DSN: c.db.DSN, Driver: c.driver})
		if err == nil || !strings.Contains(strings.ToUpper(err.Error()), "INT_LOCK") {
			t.Fatalf("without a table: %v", err)
		}
		c.migrate(t)
		java := c.java(t, javaclient.Settings{}).Thread("a")
		wantLock(t, java)
		must(t, java.Unlock(ctx, key))
	})
}

// awaitRows waits until the table has at least n rows.
func (c *cell) awaitRows(t *testing.T, want int) {
	t.Helper()
	ctx := patiently(t)
	for n := 0; n < want; {
		must(t, c.db.DB.GetContext(ctx, &n, "SELECT COUNT(*) FROM INT_LOCK"))
	}
}

var createLock = regexp.MustCompile(`CREATE TABLE INT_LOCK [^;]*`)

// springsScript returns the statement that creates the lock table in the jar's script.
func (c *cell) springsScript(t *testing.T) string {
	t.Helper()
	jars := check.Value(filepath.Glob(filepath.Join(program(t, c.generation).Dir, "lib", "spring-integration-jdbc-*.jar")))(t)
	check.Equal(t, "jars", len(jars), 1)
	name := map[string]string{"postgres": "schema-postgresql.sql", "mysql": "schema-mysql.sql"}[c.db.Name]
	statement := createLock.FindString(readFromJar(t, jars[0], "org/springframework/integration/jdbc/"+name))
	if statement == "" {
		t.Fatalf("%s creates no INT_LOCK", name)
	}
	return statement
}

func readFromJar(t *testing.T, jar, name string) string {
	t.Helper()
	archive := check.Value(zip.OpenReader(jar))(t)
	defer archive.Close()
	file := check.Value(archive.Open(name))(t)
	defer file.Close()
	text := check.Value(io.ReadAll(file))(t)
	return string(text)
}
