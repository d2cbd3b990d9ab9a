package main

import (
	"fmt"
	"strings"
)

// A change replaces a text that a file of the runtime has exactly once.
type change struct {
	file, before, after string
}

// changes make each bubble have a random generator of its own, which always begins in the same
// state. So a world is the same alone, after other worlds, and in another process.
var changes = []change{
	{"synctest.go", "type synctestBubble struct {", `
// chance returns the next random number of a bubble, as splitmix64 has them.
//
//go:nosplit
func (bubble *synctestBubble) chance() uint64 {
	bubble.chances += 0x9e3779b97f4a7c15
	z := bubble.chances
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

type synctestBubble struct {
	chances uint64`},

	// The order of timers that end in one instant.
	{"time.go", "t.rand = cheaprand()", "t.rand = uint32(getg().bubble.chance())"},

	// The case that a select takes if several are ready.
	{"select.go", "j := cheaprandn(uint32(norder + 1))", `j := cheaprandn(uint32(norder + 1))
		if gp.bubble != nil {
			j = uint32(gp.bubble.chance() % uint64(norder+1))
		}`},

	// Where the iteration of a map begins, and the numbers of math/rand.
	{"rand.go", "func rand() uint64 {", `func rand() uint64 {
	if bubble := getg().bubble; bubble != nil {
		return bubble.chance()
	}`},

	// The keys of hash functions, and so the order of maps with more than eight elements.
	{"rand.go", "globalRand.state.Init(*seed)", "globalRand.state.Init([32]byte{})"},

	// The real time after which a goroutine has to let others run, or in which a system call, such
	// as one of SQLite, loses its processor. A program with more processors has goroutines that wait
	// in system calls for each other.
	{"proc.go", "func retake(now int64) uint32 {", `func retake(now int64) uint32 {
	if gomaxprocs == 1 {
		return 0
	}`},
}

// apply returns the source of a file with the change.
func (c change) apply(source string) (string, error) {
	if n := strings.Count(source, c.before); n != 1 {
		return "", fmt.Errorf("runtime/%s has %q %d times, not once", c.file, c.before, n)
	}
	return strings.Replace(source, c.before, c.after, 1), nil
}
