package browser_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/sqllock/sqllock/internal/test/check"
)

// limit ends a test whose browser hangs. The machine may stand still for a while.
const limit = 3 * time.Minute

// names are what Chromium is called on different systems.
var names = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// chromium returns the path of the browser. Without one the test is skipped with a message, or
// fails if CI=true.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const message = "NO CHROMIUM: THE PAGE IS NOT TESTED IN A BROWSER; make test-browser installs it, as root on Debian"
	if os.Getenv("CI") == "true" {
		t.Fatal(message)
	}
	fmt.Fprintln(os.Stderr, "*** "+message)
	t.Skip(message)
	return ""
}

// A tab is a page of a browser of its own. A message on its console fails the test.
type tab struct {
	*testing.T
	ctx context.Context

	mu       sync.Mutex
	messages []string
}

// open starts a browser with a window of a width and height.
func open(t *testing.T, width, height int) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:len(chromedp.DefaultExecAllocatorOptions):len(chromedp.DefaultExecAllocatorOptions)],
		chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.WindowSize(width, height), chromedp.WSURLReadTimeout(limit),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("force-color-profile", "srgb"))
	limited, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	allocated, cancel := chromedp.NewExecAllocator(limited, options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocated)
	t.Cleanup(cancel)
	b := &tab{T: t, ctx: ctx}
	chromedp.ListenTarget(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.messages = append(b.messages, e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			b.messages = append(b.messages, e.Entry.Text+" "+e.Entry.URL)
		}
	})
	b.run(chromedp.EmulateViewport(int64(width), int64(height)))
	return b
}

// run runs actions one after the other.
func (b *tab) run(actions ...chromedp.Action) {
	b.Helper()
	check.Must(b, chromedp.Run(b.ctx, actions...))
}

// is returns the value of an expression.
func is[T any](b *tab, expression string) (value T) {
	b.Helper()
	b.run(chromedp.Evaluate(expression, &value))
	return value
}

// until waits until an expression is true.
func (b *tab) until(expression string) {
	b.Helper()
	for {
		var value bool
		err := chromedp.Run(b.ctx, chromedp.Evaluate("!!("+expression+")", &value))
		switch {
		case b.ctx.Err() != nil:
			b.Fatalf("waited for %s: %v", expression, err)
		case err == nil && value: // while a page loads there is an error
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// shows waits until the page contains text.
func (b *tab) shows(text string) {
	b.Helper()
	b.until(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// hides waits until the page does not contain text any more.
func (b *tab) hides(text string) {
	b.Helper()
	b.until(fmt.Sprintf("!document.body.innerText.includes(%q)", text))
}

// quiet checks that nothing was written to the console but what is expected. Of a document that
// names no icon, as a refusal in plain text, a browser asks its host for one, sooner or later:
// that is no fault of the page.
func (b *tab) quiet(expected ...string) {
	b.Helper()
	expected = append(expected, "/favicon.ico")
	b.mu.Lock()
	defer b.mu.Unlock()
next:
	for _, message := range b.messages {
		for _, text := range expected {
			if strings.Contains(message, text) {
				continue next
			}
		}
		b.Errorf("on the console: %s", message)
	}
}

// screenshot keeps what is seen, if the tests are asked for pictures.
func (b *tab) screenshot(name string) {
	b.Helper()
	if *pictures == "" {
		return
	}
	var png []byte
	b.run(chromedp.CaptureScreenshot(&png))
	check.Must(b, os.WriteFile(*pictures+"/"+name+".png", png, 0o600))
}
