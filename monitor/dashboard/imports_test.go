package dashboard

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
)

// TestEachModuleLinksItsLibraryAlone compares what an application links with each of the modules.
func TestEachModuleLinksItsLibraryAlone(t *testing.T) {
	t.Parallel()
	const own = `github\.com/(jmoiron/sqlx|sqllock/sqllock($|/dialect|/observe|/internal/[a-z]+$|/monitor/internal/measure$`
	for dir, also := range map[string]string{
		"otel":       `|/monitor/otel$))|^go\.opentelemetry\.io/|^github\.com/(go-logr|cespare)/`,
		"prometheus": `|/monitor/prometheus$))|^github\.com/(prometheus|beorn7|cespare|munnerz)/|^google\.golang\.org/protobuf|^golang\.org/x/sys|^go\.yaml\.in/`,
	} {
		allowed := regexp.MustCompile("^" + own + also)
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
		cmd.Dir = "../" + dir
		out := check.Value(cmd.Output())(t)
		for pkg := range strings.Lines(string(out)) {
			pkg = strings.TrimSpace(pkg)
			if host, _, _ := strings.Cut(pkg, "/"); !strings.Contains(host, ".") {
				continue // of the standard library
			}
			if !allowed.MatchString(pkg) || strings.Contains(pkg, "internal/test") {
				t.Errorf("%s links %s", dir, pkg)
			}
		}
	}
}
