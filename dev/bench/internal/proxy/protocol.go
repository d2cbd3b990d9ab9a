package proxy

import (
	"encoding/binary"
	"sync/atomic"
)

// A Protocol is how clients talk to a server: enough of it to count statements.
type Protocol int

// The protocols. Statements of Opaque ones are not counted.
const (
	Opaque Protocol = iota
	PostgreSQL
	MySQL
)

// statements returns a function that is shown what one client sends, in pieces
// of any size, and counts the statements in it.
func (p Protocol) statements(count *atomic.Int64) func([]byte) {
	switch p {
	case PostgreSQL:
		return frames(postgresHello, postgresLength, func(header []byte) {
			if header[0] == 'Q' || header[0] == 'E' { // Query and Execute
				count.Add(1)
			}
		})
	case MySQL:
		return frames(noHello, mysqlLength, func(header []byte) {
			const query, execute = 0x03, 0x17
			// Packets with a number are the client's answers in a login.
			if header[3] == 0 && (header[4] == query || header[4] == execute) {
				count.Add(1)
			}
		})
	case Opaque:
	}
	return func([]byte) {}
}

// headerSize is how much of a message tells what it is, in both protocols.
const headerSize = 5

// A hello is how the first messages of a client look, if they are unlike the
// others: the size of their header, the length of what follows it, and whether
// another hello comes after that.
type hello struct {
	size int
	read func(header []byte) (length int, again bool)
}

var (
	noHello = hello{}
	// postgresHello has no letter. A client may first ask for encryption, to be
	// refused.
	postgresHello = hello{8, func(header []byte) (int, bool) {
		const askForTLS, askForGSS = 80877103, 80877104
		code := binary.BigEndian.Uint32(header[4:])
		return int(binary.BigEndian.Uint32(header)) - len(header), code == askForTLS || code == askForGSS
	}}
)

// frames returns a function that splits a stream into messages and shows the
// header of each after the hello.
func frames(first hello, length func(header []byte) int, see func(header []byte)) func([]byte) {
	var header []byte
	greeting := first.size > 0
	rest := 0 // of the message that has been seen
	return func(data []byte) {
		for len(data) > 0 {
			if rest > 0 {
				n := min(rest, len(data))
				rest, data = rest-n, data[n:]
				continue
			}
			wanted := headerSize
			if greeting {
				wanted = first.size
			}
			n := min(wanted-len(header), len(data))
			header, data = append(header, data[:n]...), data[n:]
			if len(header) < wanted {
				continue
			}
			if greeting {
				rest, greeting = first.read(header)
			} else {
				see(header)
				rest = length(header)
			}
			header = header[:0]
		}
	}
}

// postgresLength counts itself, but not the letter before it.
func postgresLength(header []byte) int { return int(binary.BigEndian.Uint32(header[1:])) - 4 }

// mysqlLength counts neither itself nor the packet's number, but the byte that
// says what the packet is.
func mysqlLength(header []byte) int {
	return int(header[0]) | int(header[1])<<8 | int(header[2])<<16 - 1
}
