package cli

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
)

func TestVersion(t *testing.T) {
	platform := runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH
	commit := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs.revision", Value: "eca3b9c2122a0f3c"}, {Key: "vcs.modified", Value: modified}}
	}
	main := func(version string, settings []debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: "github.com/sqllock/sqllock", Version: version}, Settings: settings}
	}
	for name, test := range map[string]struct {
		release string
		info    *debug.BuildInfo
		want    string
	}{
		"go install":                           {"", main("v0.1.0", nil), "sqllock v0.1.0 (" + platform + ")"},
		"a release":                            {"v0.1.0", main("v0.1.0", commit("false")), "sqllock v0.1.0 (commit eca3b9c2122a, " + platform + ")"},
		"a release of a packager, without git": {"v0.1.0", main("(devel)", nil), "sqllock v0.1.0 (" + platform + ")"},
		"a checkout": {
			"", main("v0.0.0-20261121101442-eca3b9c2122a", commit("false")),
			"sqllock v0.0.0-20261121101442-eca3b9c2122a (commit eca3b9c2122a, " + platform + ")",
		},
		"a checkout with changes": {
			"", main("v0.0.0-20261121101442-eca3b9c2122a+dirty", commit("true")),
			"sqllock v0.0.0-20261121101442-eca3b9c2122a+dirty (commit eca3b9c2122a with changes, " + platform + ")",
		},
		"a checkout, -buildvcs=false": {"", main("(devel)", nil), "sqllock devel (" + platform + ")"},
		"no information":              {"", nil, "sqllock devel (" + platform + ")"},
	} {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "version", newBuild(test.release, test.info).String(), test.want)
		})
	}
}
