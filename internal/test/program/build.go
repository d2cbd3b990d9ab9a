package program

import (
	"runtime/debug"
	"testing"
)

// BuildFlags are those of this program, for tests that compile another: what this one was compiled from need not be
// compiled again. Such a test leaves CGO_ENABLED as it is, too.
func BuildFlags(tb testing.TB) (flags []string) {
	tb.Helper()
	info, ok := debug.ReadBuildInfo()
	if !ok {
		tb.Fatal("no information about the build")
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "-race", "-gcflags", "-tags":
			flags = append(flags, setting.Key+"="+setting.Value)
		}
	}
	return flags
}
