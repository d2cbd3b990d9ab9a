package sqllock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/dbtest"
)

// In a partitioned table a ctid says which row only together with the partition. Rows of
// two regions that were inserted in one order have the same ones.
// It takes seconds beside other tests, because it makes hundreds of statements.
func TestAPartitionedTable(t *testing.T) {
	t.Parallel()
	db := dbtest.Postgres(t)
	for _, statement := range []string{
		`CREATE TABLE P_LOCK (LOCK_KEY CHAR(36), REGION VARCHAR(100), CLIENT_ID CHAR(36), CREATED_DATE TIMESTAMP NOT NULL,
			EXPIRED_AFTER TIMESTAMP NOT NULL, PRIMARY KEY (LOCK_KEY, REGION)) PARTITION BY LIST (REGION)`,
		`CREATE TABLE P_LOCK_A PARTITION OF P_LOCK FOR VALUES IN ('A')`,
		`CREATE TABLE P_LOCK_B PARTITION OF P_LOCK FOR VALUES IN ('B')`,
		`CREATE SEQUENCE P_LOCK_FENCE`,
	} {
		db.DB.MustExec(statement)
	}
	const keys = 40
	repositories, holders := make(map[string]*sqllock.Repository), make(map[string][]string)
	for _, region := range []string{"A", "B"} {
		r, err := sqllock.NewRepository(t.Context(), db.DB.DB, dialect.Postgres(), &sqllock.RepositoryOptions{Prefix: "P_", Region: region})
		must(t, err)
		repositories[region] = r
		for i := range keys {
			holder := r.NewHolder()
			got, err := r.Acquire(t.Context(), fmt.Sprint(i), holder, ttl)
			must(t, err)
			if !got.Acquired {
				t.Fatal(got)
			}
			holders[region] = append(holders[region], holder)
		}
	}
	var working sync.WaitGroup
	for i := range keys {
		working.Go(func() {
			deleted, err := repositories["A"].Delete(context.Background(), fmt.Sprint(i), holders["A"][i])
			if err != nil || !deleted {
				t.Errorf("A, %d: %v, %v", i, deleted, err)
			}
		})
	}
	working.Wait()
	for i := range keys {
		held, err := repositories["B"].IsAcquired(t.Context(), fmt.Sprint(i), holders["B"][i])
		must(t, err)
		if !held {
			t.Errorf("B, %d: its row has gone", i)
		}
	}
}
