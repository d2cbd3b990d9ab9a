package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/monitor/page"
	sqllockprom "github.com/sqllock/sqllock/monitor/prometheus"
	"github.com/sqllock/sqllock/observe"
)

// A watch is what operators see of this instance.
type watch struct {
	recorder page.Recorder
	metrics  *sqllockprom.Collector
}

func newWatch() *watch {
	return &watch{metrics: sqllockprom.New(&sqllockprom.Options{Lock: func(key string) string {
		kind, _, _ := strings.Cut(key, "/") // "account" and not account/42: each label makes time series
		return kind
	}})}
}

func (w *watch) observers() []*observe.Observer {
	return []*observe.Observer{observe.SlogObserver(nil), w.recorder.Observer(), w.metrics.Observer()}
}

// handler has all that an instance answers.
func handler(b *bank, closing func(context.Context) error, w *watch, password string) http.Handler {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(w.metrics)

	internal := http.NewServeMux()
	internal.Handle("/internal/locks/", page.Handler(b.registry, &page.Options{Recorder: &w.recorder, Names: []string{closingKey}}))
	internal.Handle("GET /internal/metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	internal.HandleFunc("POST /internal/closing", func(w http.ResponseWriter, r *http.Request) {
		err := closing(r.Context()) // at once, and not tonight
		if errors.Is(err, sqllock.ErrNotAcquired) {
			http.Error(w, err.Error(), http.StatusConflict) // has run, or runs: by whom, and until when
			return
		}
		answer(w, r, err)
	})

	mux := http.NewServeMux()
	mux.Handle("/internal/", operators(password, internal))
	mux.HandleFunc("GET /accounts/{id}", b.serveAccount)
	mux.HandleFunc("PUT /transfers/{id}", b.serveTransfer)
	return mux
}

// operators admits those who know the password. The page shows the keys and the holders of all locks.
func operators(password string, internal http.Handler) http.Handler {
	wanted := sha256.Sum256([]byte(password))
	internal = http.NewCrossOriginProtection().Handler(internal)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, given, _ := r.BasicAuth()
		hash := sha256.Sum256([]byte(given))
		if password == "" || subtle.ConstantTimeCompare(hash[:], wanted[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="operators"`)
			http.Error(w, "for operators", http.StatusUnauthorized)
			return
		}
		internal.ServeHTTP(w, r)
	})
}

func (b *bank) serveAccount(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		err = errNoAccount
	}
	var balance int64
	if err == nil {
		balance, err = balanceOf(r.Context(), b.db, id)
	}
	if err != nil {
		answer(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]int64{"balance": balance})
}

// serveTransfer makes a transfer. Its client chooses the id, and sends the transfer again if it gets no answer, or a 503.
func (b *bank) serveTransfer(w http.ResponseWriter, r *http.Request) {
	t := transfer{ID: r.PathValue("id")}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1000)).Decode(&t); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if t.From == t.To || t.Amount <= 0 || len(t.ID) > 100 {
		http.Error(w, "a transfer is an amount from one account to another", http.StatusBadRequest)
		return
	}
	answer(w, r, b.transfer(r.Context(), t))
}

// answer answers with what an error means to the client.
func answer(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case errors.Is(err, errNoAccount):
		http.Error(w, err.Error(), http.StatusNotFound)
	case errors.Is(err, errNoMoney):
		http.Error(w, err.Error(), http.StatusConflict)
	case errors.Is(err, sqllock.ErrNotAcquired): // the text of err has the holder, which is no client's business
		w.Header().Set("Retry-After", "1")
		http.Error(w, "other transfers use the account: try again", http.StatusLocked)
	default: // ErrLockLost: nothing was committed. ErrDatabase: that is not known
		slog.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "error", err)
		w.Header().Set("Retry-After", "1")
		http.Error(w, "try again", http.StatusServiceUnavailable)
	}
}
