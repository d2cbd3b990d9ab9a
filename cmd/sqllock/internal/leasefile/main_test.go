package leasefile_test

import (
	"testing"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/cli"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exec"
	"github.com/sqllock/sqllock/internal/test/program"
)

func TestMain(m *testing.M) { program.Main(m, cli.Main, exec.HelperNames...) }
