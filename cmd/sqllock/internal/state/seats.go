package state

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/seatkey"
)

// The rows of a semaphore and of a read-write lock have keys of their own, of which a listing knows
// none by the lock's key alone. So each user has a second file, with the locks of that kind that were
// used on this host.
const (
	seatsFile = "seats"
	maxSets   = 100  // the oldest are dropped
	maxSeats  = 1000 // of each
)

// RememberSeats records that the seats of a key, of a kind of package seats, were used on this host.
// Errors are ignored, as by [RememberKey].
func RememberSeats(key, kind string, n int) {
	if fitsOnLine(key) {
		remember(seatsFile, fmt.Sprintf("%s %d %s", kind, n, key), maxSets)
	}
}

// seatKeys returns the keys of the rows of these locks.
func seatKeys() (keys []string) {
	for _, line := range readLines(seatsFile) {
		fields := strings.SplitN(line, " ", 3)
		if len(fields) < 3 {
			continue
		}
		kind, key := fields[0], fields[2]
		n, err := strconv.Atoi(fields[1])
		lockKey, invalid := sqllock.SpringKeys(key)
		if err != nil || invalid != nil {
			continue
		}
		keys = append(keys, seatkey.Turn(lockKey, kind))
		for i := range min(n, maxSeats) {
			keys = append(keys, seatkey.Seat(lockKey, kind, i))
		}
	}
	return keys
}
