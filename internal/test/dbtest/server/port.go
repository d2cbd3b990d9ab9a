package server

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// freePort returns an unused TCP port of 127.0.0.1. It lies below the range from which the
// kernel takes the ports of outgoing connections: such a connection could otherwise use the
// port while the server restarts.
func freePort(ctx context.Context) (int, error) {
	const lowest, highest, tries = 15000, 32000, 100
	var refusals []error
	for range tries {
		port := lowest + rand.IntN(highest-lowest) //nolint:gosec // not a secret
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			refusals = append(refusals, err)
			continue
		}
		return port, listener.Close()
	}
	return 0, fmt.Errorf("find a free port: %w", errors.Join(refusals...))
}
