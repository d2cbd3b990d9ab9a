package proxy

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
)

func postgresMessage(letter byte, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{letter}, uint32(len(body)+4)), body...)
}

func mysqlPacket(number byte, body string) []byte {
	return append([]byte{byte(len(body)), byte(len(body) >> 8), 0, number}, body...)
}

func join(parts ...[]byte) (all []byte) {
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

// TestStatements shows conversations whole and byte by byte.
func TestStatements(t *testing.T) {
	t.Parallel()
	startup := join(binary.BigEndian.AppendUint32(nil, 12), []byte("EEEEQQQQ"))
	tls := join(binary.BigEndian.AppendUint32(nil, 8), binary.BigEndian.AppendUint32(nil, 80877103))
	for name, test := range map[string]struct {
		protocol Protocol
		sent     []byte
		want     int64
	}{
		"postgres": {PostgreSQL, join(startup,
			postgresMessage('Q', "SELECT 1;\x00"),
			postgresMessage('P', "Q E\x00"), postgresMessage('B', "E"), postgresMessage('E', "\x00\x00\x00\x00\x00"), postgresMessage('S', ""),
			postgresMessage('X', "")), 2},
		"postgres without TLS": {PostgreSQL, join(tls, startup, postgresMessage('Q', "SELECT 1;\x00")), 1},
		"mysql": {MySQL, join(
			mysqlPacket(1, "\x03 a login"), mysqlPacket(0, "\x03SELECT 1"), mysqlPacket(0, "\x16SELECT ?"),
			mysqlPacket(0, "\x17\x00"), mysqlPacket(0, "\x01")), 2},
		"opaque": {Opaque, []byte("*1\r\n"), 0},
	} {
		for _, size := range []int{1, 3, len(test.sent)} {
			var count atomic.Int64
			see := test.protocol.statements(&count)
			for from := 0; from < len(test.sent); from += size {
				see(test.sent[from:min(from+size, len(test.sent))])
			}
			if got := count.Load(); got != test.want {
				t.Errorf("%s in pieces of %d: %d statements, want %d", name, size, got, test.want)
			}
		}
	}
}
