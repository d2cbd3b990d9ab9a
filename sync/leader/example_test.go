package leader_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/sqllock/sqllock"
	fixtures "github.com/sqllock/sqllock/internal/test/fixture"
	"github.com/sqllock/sqllock/sync/leader"
)

// lead is the beginning of docs/leader.md.
func lead(ctx context.Context, repository *sqllock.Repository) error {
	registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: 10 * time.Second})
	if err != nil {
		return err
	}
	defer registry.Close(context.WithoutCancel(ctx))
	elector, err := leader.New(registry, "scheduler", nil)
	if err != nil {
		return err
	}
	return elector.Run(ctx, func(ctx context.Context, lease *sqllock.Lease) error {
		return schedule(ctx, lease) // stop when ctx ends: another process leads soon after
	})
}

var stopExample context.CancelFunc

func schedule(ctx context.Context, lease *sqllock.Lease) error {
	fmt.Println("leading", lease.Key())
	stopExample() // as a signal does: see signal.NotifyContext
	<-ctx.Done()
	return ctx.Err()
}

// From a repository to a leader. Run returns when its context has ended.
func ExampleElector_Run() {
	registry, remove := fixtures.Example("")
	defer remove()
	ctx, cancel := context.WithCancel(context.Background())
	stopExample = cancel

	fmt.Println(lead(ctx, registry.Repository()))
	// Output:
	// leading scheduler
	// context canceled
}

// The client id says where the leader can be reached, so that the others forward to it. Here
// the one process is a leader, and then none.
func ExampleElector_IsLeader() {
	registry, remove := fixtures.Example("10.12.13.14:8080") // of this process: at most 24 characters
	defer remove()
	elector, err := leader.New(registry, "scheduler", nil)
	if err != nil {
		log.Fatal(err)
	}
	serve := func(w http.ResponseWriter, r *http.Request) {
		err := elector.IsLeader(r.Context()) // does not ask the database
		var not *leader.NotLeaderError
		switch {
		case err == nil:
			_, _ = fmt.Fprintln(w, "done")
		case errors.As(err, &not) && not.Leader.Client != "":
			http.Redirect(w, r, "http://"+not.Leader.Client+r.URL.Path, http.StatusTemporaryRedirect)
		default:
			http.Error(w, "there is no leader", http.StatusServiceUnavailable)
		}
	}
	http.Handle("/jobs", http.HandlerFunc(serve))

	ctx := context.Background()
	err = elector.Run(ctx, func(ctx context.Context, _ *sqllock.Lease) error {
		now, err := leader.Current(ctx, registry.Repository(), "scheduler")
		fmt.Println(now.Client, elector.IsLeader(ctx), err)
		return errors.New("enough")
	})
	fmt.Println(err, elector.IsLeader(ctx))
	// Output:
	// 10.12.13.14:8080 <nil> <nil>
	// enough sqllock: not the leader: "scheduler"
}

// A process that is no candidate observes who leads.
func ExampleObserve() {
	registry, remove := fixtures.Example("")
	defer remove()

	for now, err := range leader.Observe(context.Background(), registry.Repository(), "scheduler", time.Second) {
		switch {
		case err != nil:
			fmt.Println("unknown:", err)
		case now.Client == "":
			fmt.Println("nobody leads")
		default:
			fmt.Println(now.Client, "leads")
		}
		break // an application goes on
	}
	// Output: nobody leads
}

// A health check ends a process whose function does not stop although another process leads.
func ExampleElector_Check() {
	registry, remove := fixtures.Example("")
	defer remove()
	elector, err := leader.New(registry, "scheduler", nil)
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := elector.Check(5 * time.Second); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})

	fmt.Println(elector.Check(5 * time.Second))
	// Output: <nil>
}
