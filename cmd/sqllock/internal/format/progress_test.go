package format

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		stop := progress(&out, "removing expired rows")
		time.Sleep(2*time.Second + time.Millisecond)
		synctest.Wait()
		stop()
		stop() // by a defer, too
		if got, want := out.String(), "\rremoving expired rows: 1s\x1b[K\rremoving expired rows: 2s\x1b[K\r\x1b[K"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// Work that is done within a second writes nothing, nor does any work where no person watches.
func TestNoProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var terminal, file bytes.Buffer
		stopTerminal, stopFile := progress(&terminal, "removing"), Progress(&file, "removing")
		time.Sleep(progressAfter - time.Millisecond)
		stopTerminal()
		time.Sleep(time.Minute)
		stopFile()
		if terminal.Len() > 0 || file.Len() > 0 {
			t.Errorf("%q, %q", &terminal, &file)
		}
	})
}
