package contender

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/sqllock/sqllock/dev/bench/internal/durable"
)

// etcds are etcd's own locks, over the gateway of its lock service. Callers wait in the order of arrival.
func etcds() []Contender {
	return []Contender{{
		Name: "etcd", Library: "etcd's lock service", Version: "3.4", Database: durable.Etcd,
		Settings: "one server; a lease for each lock, which ends with the lock",
		Loads:    []string{OneLock, ManyCallers},
		Open:     func(_ context.Context, at Place) (Session, error) { return etcdSession(at.DSN + "/v3/"), nil },
	}}
}

// An etcdSession is the URL of the gateway.
type etcdSession string

// Lock implements [Session].
func (s etcdSession) Lock(ctx context.Context, key string) (Unlock, error) {
	const ttl = 3600 // seconds, without renewal: longer than a contest
	var lease struct{ ID string }
	if err := s.post(ctx, "lease/grant", map[string]int{"TTL": ttl}, &lease); err != nil {
		return nil, err
	}
	unlock := func(ctx context.Context) error { return s.post(ctx, "lease/revoke", lease, &struct{}{}) }
	return unlock, s.post(ctx, "lock/lock", map[string]any{"name": []byte(key), "lease": lease.ID}, &struct{}{})
}

var errEtcd = errors.New("etcd says")

func (s etcdSession) post(ctx context.Context, path string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, string(s)+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s", errEtcd, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

// Connections implements [Session]: they are not counted.
func (etcdSession) Connections() int { return 0 }

func (etcdSession) Close() error { return nil }
