package server

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// freePort returns a TCP port of 127.0.0.1 on which nobody listens. It lies
// below the range from which the kernel takes the ports of outgoing
// connections: one of those could otherwise sit on the port when the server
// comes back from a restart.
func freePort(ctx context.Context) (int, error) {
	const lowest, highest, tries = 15000, 32000, 100
	var refusals []error
	for range tries {
		port := lowest + rand.IntN(highest-lowest) //nolint:gosec // no secret
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			refusals = append(refusals, err)
			continue
		}
		return port, listener.Close()
	}
	return 0, fmt.Errorf("find a free port: %w", errors.Join(refusals...))
}
