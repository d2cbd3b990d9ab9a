package page_test

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/monitor/page"
	"github.com/sqllock/sqllock/observe"
)

var (
	registry   *sqllock.Registry
	repository *sqllock.Repository
	mux        = http.NewServeMux()
)

// requireOperator is what an application has to authenticate its users.
func requireOperator(next http.Handler) http.Handler { return next }

func isOperator(*http.Request) bool { return false }

func userOf(*http.Request) string { return "" }

func ExampleHandler() {
	mux.Handle("/internal/locks/", requireOperator(page.Handler(registry, nil)))
}

func ExampleRecorder() {
	recorder := new(page.Recorder)
	registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{
		Observers: []*observe.Observer{recorder.Observer()},
	})
	if err != nil {
		return
	}
	handler := page.Handler(registry, &page.Options{
		Recorder: recorder,
		Names:    []string{"nightly-report"},
		Roles:    []string{"scheduler"},
		Permits:  map[string]int{"render": 3},
	})
	mux.Handle("/internal/locks/", requireOperator(handler))
}

func ExampleOptions_allowUnlock() {
	_ = page.Options{
		AllowUnlock: func(r *http.Request, _ sqllock.Row) error {
			if !isOperator(r) {
				return errors.New("only operators unlock")
			}
			return nil
		},
		OnUnlock: func(r *http.Request, u page.Unlock) {
			slog.InfoContext(r.Context(), "unlock", "user", userOf(r), "key", u.Row.Key, "lock_key", u.Row.LockKey, "holder", u.Row.Holder, "removed", u.Removed, "error", u.Err)
		},
	}
}
